"""Numbers of examples that property tests try."""

from typing import Any

import hypothesis

QUICK = "quick"  # profile of `make quick`
MOST_QUICK = 10


def examples(count: int, **more: Any) -> hypothesis.settings:
    """Return settings with `count` examples, and with a few in `make quick`."""
    profile = hypothesis.settings.get_current_profile_name()
    return hypothesis.settings(max_examples=MOST_QUICK if profile == QUICK else count, **more)

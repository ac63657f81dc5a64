"""Numbers of examples that property tests try, and of trials of other random tests."""

from typing import Any

import hypothesis

QUICK = "quick"  # profile of `make quick`
MOST_QUICK = 10


def examples(count: int, **more: Any) -> hypothesis.settings:
    """Return settings with `count` examples, and with a few in `make quick`."""
    return hypothesis.settings(max_examples=MOST_QUICK if _is_quick() else count, **more)


def trials(count: int) -> int:
    """Return `count`, and a tenth of it in `make quick`."""
    return count // 10 if _is_quick() else count


def _is_quick() -> bool:
    return hypothesis.settings.get_current_profile_name() == QUICK

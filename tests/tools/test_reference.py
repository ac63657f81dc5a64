"""The page of options is what the declarations say."""

from pathlib import Path

from multigpu.errors import options_spelled
from multigpu.run.declarations import flag
from multigpu.tools.reference import page

ROOT = Path(__file__).resolve().parents[2]


def test_page__is_made_from_the_declarations() -> None:
    with options_spelled(flag):
        made = "\n".join(page()) + "\n"
    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == made, "make reference"

"""The commands of the README and of the tour, in their order, in an empty folder."""

from pathlib import Path

import pytest
from support.readme import commands, printed

ROOT = Path(__file__).resolve().parents[1]
OF_THIS_MACHINE = ("multigpu plan", "multigpu doctor")  # what they print differs


def test_commands__are_found_with_what_they_print() -> None:
    page = "text\n```\n$ a\n1\n2\n$ b\n```\n$ no\n```\n$ c\n3\n$ d <<'END'\n5\nEND\n6\n```\n"
    page += "```\n$ e \\\n  f\n7\n$ g \\\n h <<'END'\n8\\\nEND\n```\n"
    assert [(c.line, c.text, c.shown) for c in commands(page)] == [
        (3, "a", ("1", "2")), (6, "b", ()), (10, "c", ("3",)),
        (14, "d <<'END'\n5\nEND", ("6",)), (19, "e \\\n  f", ("7",)),
        (24, "g \\\n h <<'END'\n8\\\nEND", ()),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("page", "least"), [("README.md", 7), ("docs/tour.md", 16)])
def test_page__prints_what_it_shows(page: str, least: int, tmp_path: Path) -> None:
    wanted = list(commands((ROOT / page).read_text(encoding="utf-8")))
    assert len(wanted) >= least
    said = tmp_path / "stderr"
    with said.open("wb") as errors:
        outputs = printed(wanted, tmp_path, 500, errors.fileno())
    for command, lines in zip(wanted, outputs, strict=True):
        shown = list(command.shown)
        if command.text.startswith(OF_THIS_MACHINE):
            assert len(lines) >= len(shown) - 2, command  # some notes are not on every machine
        elif shown:
            assert lines == shown, (command, said.read_text()[-2000:])

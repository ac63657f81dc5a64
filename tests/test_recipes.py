"""The commands of docs/scan-errors.md, in its order, in an empty folder, and its drawing."""

from pathlib import Path

import numpy as np
from support.readme import commands, printed

from multigpu.kernels import bases
from multigpu.kernels.scan.approximate.reference import distances, edit_hits

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scan-errors.md"


def test_recipes__print_what_they_show(tmp_path: Path) -> None:
    wanted = list(commands(PAGE.read_text(encoding="utf-8")))
    assert sum(command.text.startswith("multigpu scan") for command in wanted) > 5
    outputs = printed(wanted, tmp_path, seconds=250)
    for command, lines in zip(wanted, outputs, strict=True):
        assert lines == list(command.shown), command


def test_drawing__is_what_the_reference_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    sample, signature = "TTACGTATTACGTCCTCCGTATT", "ACGTA"
    assert f">sample\\n{sample}\\n" in page
    assert f">sig\\n{signature}\\n" in page
    assert f"```\n{drawing(sample, signature, most=1)}\n```" in page


def drawing(sample: str, signature: str, most: int) -> str:
    """Return the ends of a sample, the bases between them, d(e), and a mark under each hit."""
    text, pattern = (
        bases.encode(np.frombuffer(letters.encode(), np.uint8)) for letters in (sample, signature)
    )
    exact, strict = 0, False
    edits = [cell[0] for cell in distances(text, pattern, exact, exact, strict)[-1]]
    hits = {hit.end for hit in edit_hits(text, pattern, most, exact, exact, strict)}
    rows = {
        "end e": [str(end) for end in range(len(edits))],
        "sample": [f"  {base}" for base in sample],
        "d(e)": [str(count) for count in edits],
        "hits": ["^" if end in hits else "" for end in range(len(edits))],
    }
    lines = [f"{name:8}" + "".join(f"{cell:3}" for cell in row) for name, row in rows.items()]
    return "\n".join(line.rstrip() for line in lines)

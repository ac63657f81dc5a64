"""Documents for developers: the files that they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A path in backticks that begins with one of our folders; NAME stands for any workload or kernel.
OURS = re.compile(
    r"`((?:multigpu|kernels|cluster|tests|benchmarks|docs)/[\w./{},*-]*|[\w.-]+/)`(?!\()"
)


def paths_in(text: str) -> list[str]:
    """Return the paths of this repository that a document names, without placeholders."""
    found = [match[1] for match in OURS.finditer(text)]
    return [path for path in found if not re.search(r"NAME|[{*]", path) and "/" in path.rstrip("/")]


DOCUMENTS = (
    "docs/architecture.md",
    "docs/developing.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents__name_files_that_exist(name: str) -> None:
    paths = paths_in((ROOT / name).read_text(encoding="utf-8"))
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_paths_in__finds_ours_only() -> None:
    text = "`multigpu/cli.py`, `multigpu/NAME/api.py`, `sheet.xlsx`, `tests/x/`, multigpu/bare.py"
    assert paths_in(text) == ["multigpu/cli.py", "tests/x/"]

"""One class name means one thing in the whole source."""

import ast
from collections import defaultdict
from pathlib import Path

from support.sources import ROOT, modules

TWINS = {"cpu.py", "cuda.py", "reference.py"}  # of one folder: the same thing on different devices


def class_places() -> dict[str, list[Path]]:
    """Return the files that define each class; a leading underscore does not make another name."""
    found = defaultdict(list)
    for path in modules():
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(path.relative_to(ROOT))
    return found


def test_class_name__stands_for_one_thing() -> None:
    twice = {
        name: sorted(map(str, places))
        for name, places in class_places().items()
        if len(places) > 1
        and not (
            {path.name for path in places} <= TWINS and len({path.parent for path in places}) == 1
        )
    }
    assert twice == {}

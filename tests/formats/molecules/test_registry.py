"""Registered formats of ligands: what each of them has to give."""

import ast
from pathlib import Path

from multigpu.formats import molecules
from multigpu.formats.molecules.registry import FORMATS


def test_formats__are_named_by_their_own_modules_only() -> None:
    """So that a new one is a module and a line of the registry."""
    for path in Path(molecules.__file__).parent.glob("*.py"):
        constants = [
            node.value for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]  # fmt: skip
        assert not {*constants} & {*FORMATS} - {path.stem}, path.name

"""Registered formats of ligands: what each of them has to give."""

import ast
from pathlib import Path

import numpy as np
import pytest
from support.ligand_texts import TEXTS

from multigpu.formats import molecules
from multigpu.formats.molecules.columns import write_poses
from multigpu.formats.molecules.registry import COLUMN_FORMATS, FORMATS, SUFFIXES, parse
from multigpu.formats.tables.texts import Texts

NOTES = {"score": "1.500000", "pose": "1"}


def test_formats__have_suffixes_of_their_own() -> None:
    assert len(SUFFIXES) == sum(len(each.suffixes) for each in FORMATS.values())


@pytest.mark.parametrize("layout", FORMATS)
def test_molecule__knows_its_format(layout: str) -> None:
    assert parse(TEXTS[layout], layout).format is FORMATS[layout]


@pytest.mark.parametrize("layout", COLUMN_FORMATS)
def test_example__is_read_and_written_in_columns_as_alone(layout: str) -> None:
    columns, texts = COLUMN_FORMATS[layout], Texts.of([COLUMN_FORMATS[layout].example])
    found = columns.read(texts, np.ones(1, np.bool_), ["C"])
    assert found.atoms.sizes.tolist() == [1]
    places = np.array([[1.0, -2.5, 3.25]])
    frame = columns.frame("" if found.is_named[0] else "name", NOTES)
    sizes = np.ones(1, np.int64)
    (pose,) = write_poses([frame], found.bodies, sizes, places, columns.places).each()
    molecule = parse(texts[0], layout)
    assert pose == molecule.format.rewrite(molecule, "name", places, NOTES)


def test_formats__are_named_by_their_own_modules_only() -> None:
    """So that a new one is a module and a line of the registry."""
    for path in Path(molecules.__file__).parent.glob("*.py"):
        constants = [
            node.value for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]  # fmt: skip
        assert not {*constants} & {*FORMATS} - {path.stem}, path.name

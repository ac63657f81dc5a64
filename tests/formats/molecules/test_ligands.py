"""Ligand files: where records end, and what is read of them again."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from support.ligand_texts import ETHANOL, MANY, TEXTS
from support.stored import Store

from multigpu.errors import InputError
from multigpu.formats.molecules import ligands
from multigpu.formats.molecules.ligands import LigandRecords, open_sources, read_records
from multigpu.formats.molecules.registry import FORMATS
from multigpu.formats.storage.input_paths import expand


def cut(text: bytes, ends: list[int]) -> list[bytes]:
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def each(found: Iterable[LigandRecords]) -> list[tuple[int, int, bytes]]:
    """Source, number and text of every record."""
    return [
        (some.source, some.number + k, text)
        for some in found
        for k, text in enumerate(some.texts.each())
    ]


@pytest.mark.parametrize("layout", MANY)
@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_records__are_the_same_from_blocks_of_any_size(
    layout: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ligands, "READ_BYTES", size)
    text = b"".join(MANY[layout])
    path = tmp_path / f"some.{layout}.gz"
    path.write_bytes(gzip.compress(text))
    sources, bad = open_sources([str(path)], skip=True)
    found = each(read_records(0, sources[0]))
    wanted = cut(text, FORMATS[layout].find_ends(text, True))
    assert bad == []
    assert found == [(0, number, text) for number, text in enumerate(wanted, 1)]


@pytest.mark.parametrize("layout", MANY)
def test_byte_order_mark__is_left_out(layout: str, tmp_path: Path) -> None:
    path, text = tmp_path / f"some.{layout}", b"".join(MANY[layout])
    path.write_bytes(b"\xef\xbb\xbf" + text)
    (source,), _ = open_sources([str(path)], skip=False)
    assert b"".join(record for _, _, record in each(read_records(0, source))) == text


@pytest.mark.parametrize("layout", MANY)
@pytest.mark.parametrize("code", ["utf-16", "utf-16-le", "utf-16-be"])
def test_sources__in_utf_16_are_refused(layout: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / f"some.{layout}"
    path.write_bytes(MANY[layout][0].decode().encode(code))
    with pytest.raises(InputError, match="is text in UTF-16: convert it with `iconv"):
        open_sources([str(path)], skip=False)


def test_records__of_a_cut_file_end_with_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "cut.sdf.gz"
    numbers = np.random.default_rng(1).random(20_000).tolist()
    text = b"".join(ETHANOL.replace(b"A-17", b"%r" % number) for number in numbers)
    path.write_bytes(gzip.compress(text)[:-9])
    sources, _ = open_sources([str(path)], skip=True)
    *good, last = read_records(0, sources[0])
    assert last.error == "gzip data ends early: the file is truncated"
    assert last.number == good[-1].last + 1 > 1


def test_records__of_a_file_without_atoms_say_so(store: Store) -> None:
    sources, _ = open_sources([store(b"REMARK nothing\nEND\n", "none.pdb")], skip=True)
    (only,) = read_records(0, sources[0])
    assert only.error == "there is no molecule in it"
    assert FORMATS["xyz"].find_ends(b"9" * 5000 + b"\nx\n", False) == []


@pytest.mark.parametrize("layout", TEXTS)
def test_layout__is_told_by_content_where_no_name_says_it(layout: str, store: Store) -> None:
    (source,), _ = open_sources([store(TEXTS[layout], "unknown")], skip=False)
    assert source.layout == layout


def test_sources__that_are_no_ligands_are_skipped_or_stop(store: Store) -> None:
    paths = [store(ETHANOL, "a.sdf"), store(b"", "b.sdf"), store(b"hello", "c.txt")]
    sources, bad = open_sources(paths, skip=True)
    assert [source.layout for source in sources] == ["sdf", "", ""]
    problems = [(record.source, record.error[:20]) for record in bad]
    assert problems == [(1, "is empty"), (2, "no ligands by name o")]
    with pytest.raises(InputError, match=r"b\.sdf: is empty"):
        open_sources(paths, skip=False)


def test_directory__stands_for_its_ligands(tmp_path: Path) -> None:
    for name in ("b.sdf", "a.pdbqt.gz", "c.xyz", ".hidden.sdf", "notes.txt"):
        (tmp_path / name).write_bytes(ETHANOL)
    found = expand([str(tmp_path)], ligands.LIGANDS)
    assert found == [str(tmp_path / name) for name in ("a.pdbqt.gz", "b.sdf", "c.xyz")]


@pytest.mark.parametrize("name", ["a.smi", "a.SMILES.gz"])
def test_sources__of_smiles_say_how_to_make_coordinates(store: Store, name: str) -> None:
    path = store(gzip.compress(b"CCO a\n") if ".gz" in name else b"CCO a\n", name)
    with pytest.raises(InputError, match=r"SMILES has no 3D coordinates: .* `obabel .*--gen3d"):
        open_sources([path], skip=False)


@pytest.mark.parametrize("layout", TEXTS)
def test_records__without_an_end_are_not_read_for_ever(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ligands, "READ_BYTES", 100)
    monkeypatch.setattr(ligands, "MOST_BYTES", 5000)
    endless = {"xyz": b"999999\n\n"}.get(layout, TEXTS[layout][:60].rpartition(b"\n")[0] + b"\n")
    path = tmp_path / f"a.{layout}"
    path.write_bytes(endless + b"C 0 0 0\n" * 2000)
    *_, last = read_records(0, open_sources([str(path)], skip=False)[0][0])
    assert last.error == "the molecule has no end in 5,000 bytes: the rest is not read"

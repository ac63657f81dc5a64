"""Ligand files: where records end, and what is read of them again."""

import gzip
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ligand_texts import ETHANOL, MANY, TEXTS

from multigpu.cluster.engine.plan import Cost
from multigpu.dock.plan import DockPlan, dock_spans
from multigpu.errors import InputError
from multigpu.formats.molecules import ligands
from multigpu.formats.molecules.ligands import LigandRecords, open_sources, read_records
from multigpu.formats.molecules.registry import FORMATS
from multigpu.formats.storage.sources import Source, expand


def cut(text: bytes, ends: list[int]) -> list[bytes]:
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def each(found: Iterable[LigandRecords], sources: Sequence[Source]) -> list[tuple[int, int, bytes]]:
    """Source, number and text of every record."""
    return [
        (some.source, some.number + k, text)
        for some in found
        for k, text in enumerate(some.texts(sources).each())
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
    found = each(read_records(0, sources[0]), sources)
    wanted = cut(text, FORMATS[layout].find_ends(text, True))
    assert bad == []
    assert found == [(0, number, text) for number, text in enumerate(wanted, 1)]


@pytest.mark.parametrize("layout", MANY)
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_records__are_the_same_read_again(
    layout: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ligands, "READ_BYTES", size)
    (tmp_path / "plain").write_bytes(b"".join(MANY[layout]))
    sources, _ = open_sources([str(tmp_path / "plain")], False)
    whole = list(read_records(0, sources[0]))
    light = list(read_records(0, sources[0], with_text=False))
    assert all(some.text is None for some in light)
    assert len(each(whole, sources)) == len(MANY[layout]) > 1
    assert each(light, sources) == each(whole, sources)
    assert [light[0].number, light[-1].last] == [1, len(MANY[layout])]


@given(
    plain=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    chunk_bytes=st.integers(1, 8 * len(ETHANOL)),
    chunk_ligands=st.integers(1, 8),
)
def test_spans__are_the_same_whether_ligands_are_sent_or_read(
    plain: list[int], chunk_bytes: int, chunk_ligands: int
) -> None:
    plan = DockPlan(
        chunk_bytes=chunk_bytes,
        chunk_ligands=chunk_ligands,
        pose_spans=((0, 10),),
        budget=0,
        cost=Cost(1, 0),
        lanes=1,
    )
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{i}.sdf" for i in range(len(plain))]
        for path, count in zip(paths, plain, strict=True):
            path.write_bytes(
                b"".join(ETHANOL.replace(b"A-17", b"A" * (1 + k)) for k in range(count))
            )
        sources, _ = open_sources([str(path) for path in paths], False)
        both = []
        for with_text in (True, False):
            every = chain.from_iterable(
                read_records(i, source, with_text) for i, source in enumerate(sources)
            )
            spans = list(dock_spans(every, plan))
            assert all(
                isinstance(some.text, bytes) == with_text for s in spans for some in s.records
            )
            both.append([(span.first, each(span.records, sources)) for span in spans])
    sent, found = both
    assert sent == found
    for _, group in sent:
        size = sum(len(text) for _, _, text in group)
        assert len(group) == 1 or (size <= chunk_bytes and len(group) <= chunk_ligands)


def test_records__of_a_file_that_has_become_shorter(tmp_path: Path) -> None:
    path = tmp_path / "two.sdf"
    path.write_bytes(2 * ETHANOL)
    sources, _ = open_sources([str(path)], False)
    light = list(read_records(0, sources[0], with_text=False))
    path.write_bytes(ETHANOL)
    with pytest.raises(InputError, match="was cut while it was read"):
        each(light, sources)


def test_records__of_a_cut_file_end_with_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "cut.sdf.gz"
    numbers = np.random.default_rng(1).random(20_000).tolist()
    text = b"".join(ETHANOL.replace(b"A-17", b"%r" % number) for number in numbers)
    path.write_bytes(gzip.compress(text)[:-9])
    sources, _ = open_sources([str(path)], skip=True)
    *good, last = read_records(0, sources[0])
    assert last.error == "gzip data ends early: the file is truncated"
    assert last.number == good[-1].last + 1 > 1


def test_records__of_a_file_without_atoms_say_so(tmp_path: Path) -> None:
    path = tmp_path / "none.pdb"
    path.write_bytes(b"REMARK nothing\nEND\n")
    sources, _ = open_sources([str(path)], skip=True)
    (only,) = read_records(0, sources[0])
    assert only.error == "there is no molecule in it"


@pytest.mark.parametrize("layout", TEXTS)
def test_layout__is_told_by_the_content_where_the_name_says_nothing(
    layout: str, tmp_path: Path
) -> None:
    path = tmp_path / "unknown"
    path.write_bytes(TEXTS[layout])
    (source,), _ = open_sources([str(path)], skip=False)
    assert source.layout == layout


def test_sources__that_are_no_ligands_are_skipped_or_stop(tmp_path: Path) -> None:
    good, empty, other = (tmp_path / name for name in ("a.sdf", "b.sdf", "c.txt"))
    good.write_bytes(ETHANOL)
    empty.write_bytes(b"")
    other.write_bytes(b"hello")
    paths = [str(good), str(empty), str(other)]
    sources, bad = open_sources(paths, skip=True)
    assert [source.layout for source in sources] == ["sdf", "", ""]
    assert [(record.source, record.error[:20]) for record in bad] == [
        (1, "is empty"),
        (2, "no ligands by name o"),
    ]
    with pytest.raises(InputError, match=r"b\.sdf: is empty"):
        open_sources(paths, skip=False)


def test_directory__stands_for_its_ligands(tmp_path: Path) -> None:
    for name in ("b.sdf", "a.pdbqt.gz", "c.xyz", ".hidden.sdf", "notes.txt"):
        (tmp_path / name).write_bytes(ETHANOL)
    found = expand([str(tmp_path)], ligands.LIGANDS)
    assert found == [str(tmp_path / name) for name in ("a.pdbqt.gz", "b.sdf", "c.xyz")]


def test_records__of_a_number_of_thousands_of_digits_are_none() -> None:
    assert FORMATS["xyz"].find_ends(b"9" * 5000 + b"\nx\n", False) == []


def test_records__of_another_length_than_their_text_are_refused() -> None:
    with pytest.raises(ValueError, match="of another length"):
        LigandRecords(source=0, number=1, lengths=np.array([2, 3]), text=b"1234")


@pytest.mark.parametrize("name", ["a.smi", "a.SMILES.gz"])
def test_sources__of_smiles_say_how_to_make_coordinates(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"CCO a\n") if ".gz" in name else b"CCO a\n")
    with pytest.raises(InputError, match=r"SMILES has no 3D coordinates: .* `obabel .*--gen3d"):
        open_sources([str(tmp_path / name)], skip=False)


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

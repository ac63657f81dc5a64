"""Pocket files to grids: every format, and what is wrong with them."""

import gzip
import math
import tracemalloc
import zipfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import pocket_texts
from support.pocket_texts import ORIGIN, SHAPE, SPACING, VALUES, dx, mrc_bytes
from support.stored import Store

from multigpu.errors import InputError, UsageError
from multigpu.formats.molecules.pockets import Pocket, read_pocket
from multigpu.formats.storage.zstandard import zstd


def autogrid(folder: Path, types: tuple[str, ...] = ("A", "OA"), oa: str = "") -> str:
    """Maps whose values are those of VALUES, times 1, 2, 3 …; oa: another map of OA."""
    path = pocket_texts.autogrid(folder, types, lambda i: VALUES * i, ORIGIN, SPACING)
    if oa:
        (folder / "p.OA.map").write_text(oa)
    return path


def check(pocket: Pocket, factor: int = 1) -> None:
    assert pocket.values.flags.c_contiguous
    np.testing.assert_array_equal(pocket.values[0], VALUES * factor)
    np.testing.assert_allclose(pocket.origin, ORIGIN, atol=1e-12)
    np.testing.assert_allclose(pocket.spacing, [SPACING] * 3)


DOWN = dx(
    VALUES[::-1, :, ::-1],
    origin=f"origin {ORIGIN[0] + 2 * SPACING} {ORIGIN[1]} {ORIGIN[2] + 4 * SPACING}",
    x=f"delta -{SPACING} 0 0",
    z=f"delta 0 0 -{SPACING}",
)
CRLF = gzip.compress(dx().replace(b"\n", b"\r\n"))
SKEWED = dict.fromkeys(["word_26", "word_30", "word_34"], 1.0) | {"word_25": 1}


@pytest.mark.parametrize(("name", "content"), [("p.dx", dx()), ("p.dx.gz", CRLF), ("p.dx", DOWN)])
def test_dx__is_read_with_z_fastest(store: Store, name: str, content: bytes) -> None:
    """Also compressed, with CRLF, and down an axis."""
    check(read_pocket(store(content, name)))


def test_dx__has_a_spacing_for_each_axis(store: Store) -> None:
    pocket = read_pocket(store(dx(y="delta 0 0.75 0", z="delta 0 0 1e0"), "pocket.dx"))
    assert pocket.spacing.tolist() == [0.5, 0.75, 1.0]


def test_autogrid__of_a_public_example_has_its_maps(golden: Path) -> None:
    pocket = read_pocket(str(golden / "dock" / "real_1stp" / "1stp_protein.maps.fld"))
    assert pocket.types == ("A", "C", "OA", "N", "SA", "HD")
    assert pocket.shape == (25, 23, 33)
    np.testing.assert_allclose(pocket.origin, [6.234, -2.092, -17.537])


def test_numpy__takes_origin_and_spacing_from_the_options_or_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", VALUES.astype(np.float64))
    check(read_pocket(str(tmp_path / "p.npy"), ORIGIN, SPACING))
    np.savez(tmp_path / "p.npz", grid=VALUES, origin=ORIGIN, spacing=SPACING, atoms=np.ones(3))
    check(read_pocket(str(tmp_path / "p.npz")))
    with pytest.raises(UsageError, match="does not say its spacing: give --spacing"):
        read_pocket(str(tmp_path / "p.npy"), ORIGIN)
    np.savez(tmp_path / "several.npz", a=VALUES, b=VALUES)
    with pytest.raises(InputError, match=r"which array is the grid.* there is a, b"):
        read_pocket(str(tmp_path / "several.npz"), ORIGIN, SPACING)


@pytest.mark.parametrize("name", ["p.mrc", "p.ccp4", "p.map", "p.mrc.zst"])
def test_mrc__stands_where_its_header_says(store: Store, name: str) -> None:
    pack = zstd.compress if name.endswith("zst") else bytes
    for words in ({}, SKEWED):  # a skew transformation that changes nothing
        check(read_pocket(store(pack(mrc_bytes(**words)), name)), factor=8)


def test_mrc__may_start_elsewhere_and_have_other_samples_in_its_cell(store: Store) -> None:
    words = {"word_50": 0.0, "word_51": 0.0, "word_52": 0.0, "word_5": -3, "word_6": 4, "word_7": 1}
    assert read_pocket(store(mrc_bytes(**words), "p.mrc")).origin.tolist() == [-1.5, 2.0, 0.5]
    pocket = read_pocket(store(mrc_bytes(word_8=6, word_9=8, word_10=1), "p.mrc"))
    assert pocket.spacing.tolist() == [0.25, 0.25, 2.5]


@pytest.mark.parametrize("case", [*product([0, 1, 2, 6], [False, True], [0, 80, 81])], ids=str)
def test_mrc__of_every_mode_byte_order_and_extended_header(store: Store, case: Any) -> None:
    check(read_pocket(store(mrc_bytes(*case), "p.mrc")), factor=8)


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1), (3, 2, 1)])
def test_mrc__may_have_its_axes_in_another_order(store: Store, order: tuple[int, ...]) -> None:
    """Columns, rows and sections are along these; gemmi reads the same."""
    gemmi = pytest.importorskip("gemmi", reason="the package is not installed")
    path = store(mrc_bytes(**{f"word_{17 + i}": axis for i, axis in enumerate(order)}), "p.mrc")
    axes = [order.index(axis) for axis in (1, 2, 3)]
    pocket = read_pocket(path)
    np.testing.assert_array_equal(pocket.values[0], (VALUES * 8).transpose(axes))
    file = gemmi.read_ccp4_map(path)
    np.testing.assert_array_equal(pocket.values[0], np.array(file.grid).transpose(axes))


@pytest.mark.parametrize("name", ["p.mrc", "p.npz", "p.dx", "p.maps.fld"])
def test_pocket__may_be_given_by_url(tmp_path: Path, name: str) -> None:
    (tmp_path / "p.mrc").write_bytes(mrc_bytes())
    (tmp_path / "p.dx").write_bytes(dx())
    np.savez(tmp_path / "p.npz", grid=VALUES, origin=ORIGIN, spacing=SPACING)
    path = Path(autogrid(tmp_path)).with_name(name)
    pocket = read_pocket(path.as_uri())
    assert pocket.path == path.as_uri()
    np.testing.assert_array_equal(pocket.values, read_pocket(str(path)).values)


@pytest.mark.parametrize("by_url", [False, True])
def test_autogrid__goes_without_maps_that_are_not_there(tmp_path: Path, by_url: bool) -> None:
    """Vina's own tutorial has such a file. Compressed maps are there."""
    path = Path(autogrid(tmp_path, ("A", "Br", "OA")))
    (tmp_path / "p.Br.map").unlink()
    for name, suffix, compressed in (("OA", ".gz", gzip.compress), ("e", ".zst", zstd.compress)):
        plain = tmp_path / f"p.{name}.map"
        Path(f"{plain}{suffix}").write_bytes(compressed(plain.read_bytes()))
        plain.unlink()
    pocket = read_pocket(path.as_uri() if by_url else str(path))
    check(pocket)
    assert pocket.types == ("A", "OA")
    for values, factor in zip(pocket.values, (1, 3, 4, 5), strict=True):
        np.testing.assert_array_equal(values, VALUES * factor)


@pytest.mark.parametrize("by_url", [False, True])
@pytest.mark.parametrize("missing", ["e", "d", "A OA"])
def test_autogrid__names_a_map_that_is_missing(tmp_path: Path, missing: str, by_url: bool) -> None:
    path = Path(autogrid(tmp_path))
    for name in missing.split():
        (tmp_path / f"p.{name}.map").unlink()
    with pytest.raises(InputError) as caught:
        read_pocket(path.as_uri() if by_url else str(path))
    first = path.with_name(f"p.{missing.split()[0]}.map")
    start = f"{first.as_uri() if by_url else first}: cannot be read: there is no such file"
    assert str(caught.value).startswith(start)


NAN = VALUES.copy()
NAN[1, 2, 3] = np.nan
FLAT = VALUES[:, :1]
COUNTS = "object 1 class gridpositions counts {} {} {}"


@pytest.mark.parametrize(("content", "problem"), [
    (dx(NAN), r"pocket\.dx: grid index \[1, 2, 3\] \(from 0\): the value is nan: every value"),
    (dx(body="1 2 3"), "3 values where 'gridpositions counts' says 60"),
    (dx(body="1 2\nx " + "0 " * 57), r"line 10: 'x' is no number"),
    (dx(x="delta 0.5 0.1 0"), "its axes are not parallel to x, y and z"),
    (dx(x="delta nan 0 0"), r"line 4: every number must be finite: 'nan 0 0'"),
    (dx(origin="origin 0 inf 0"), r"line 3: every number must be finite: '0 inf 0'"),
    (dx(counts=COUNTS.format(*[1 << 32] * 3)), "60 values where .* says 79,228,162,514,264,"),
    (dx(counts=COUNTS.format("9" * 5000, 4, 5)), "it has no 'class gridpositions counts"),
    (dx(x=""), "it needs 3 line"),
    (dx(counts=""), "it has no 'class gridpositions counts nx ny nz'"),
    (dx(data=""), "it has no array with 'data follows'"),
    (b"", "is empty"),
])  # fmt: skip
def test_dx__that_is_wrong_is_refused(store: Store, content: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_pocket(store(content, "pocket.dx"))


def map_text(steps: str = "2 3 4", spacing: str = "0.5", values: int = 60, first: str = "1") -> str:
    head = f"G g\nG p\nM p\nSPACING {spacing}\nNELEMENTS {steps}\nCENTER -1.0 2.75 1.25\n"
    return head + "\n".join([first, *["1"] * (values - 1)]) + "\n"


@pytest.mark.parametrize(("text", "problem"), [
    (map_text(steps="2 3 6"), r"p\.OA\.map: NELEMENTS is 2 3 6, but 2 3 4 in .*: the maps are"),
    (map_text(spacing="0.375"), r"p\.OA\.map: SPACING is 0\.375, but 0\.5"),
    (map_text(values=59), r"p\.OA\.map: 59 values where NELEMENTS says 60"),
    (map_text(first="nan"), r"p\.maps\.fld: map OA, grid index \[0, 0, 0\]"),
    (map_text(first="?"), r"p\.OA\.map: line 7: '\?' is no number"),
    ("nothing\n" * 70, r"p\.OA\.map: it does not say SPACING as AutoGrid does"),
    (map_text(steps="2 3 nan"), r"p\.OA\.map: line 5: every number must be finite"),
])  # fmt: skip
def test_autogrid__with_a_bad_map_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_pocket(autogrid(tmp_path, oa=text))


@pytest.mark.parametrize(("old", "new", "problem"), [
    ("NELEMENTS 2 3 4", "NELEMENTS inf 3 4", r"line 3: every number must be finite: 'inf 3 4'"),
    ("NELEMENTS 2 3 4", "NELEMENTS -8 -8 4", "NELEMENTS is -8 -8 4: they must be whole numb"),
    ("NELEMENTS 2 3 4", "NELEMENTS 2.5 3 4", r"NELEMENTS is 2\.5 3 4: they must be whole numb"),
    ("NELEMENTS 2 3 4", "NELEMENTS 1e300 3 4", r"NELEMENTS is 1e\+300 3 4: .* to 1,000,000,"),
    ("NELEMENTS 2 3 4", "NELEMENTS 2 3", "it does not say NELEMENTS as AutoGrid does"),
    ("CENTER -1.0", "CENTER inf", r"line 4: every number must be finite: 'inf 2\.75 1\.25'"),
])  # fmt: skip
@pytest.mark.parametrize("maps_too", [False, True])
def test_autogrid__with_a_header_that_makes_no_grid_is_refused(
    tmp_path: Path, maps_too: bool, old: str, new: str, problem: str
) -> None:
    path = Path(autogrid(tmp_path))
    for file in tmp_path.iterdir() if maps_too else [path]:
        file.write_text(file.read_text().replace(old, new))
    with pytest.raises(InputError, match=rf"p\.maps\.fld: .*{problem}"):
        read_pocket(str(path))


def test_numpy__inflates_what_is_needed_only(tmp_path: Path) -> None:
    more = {f"big{i}": np.zeros(2_000_000) for i in range(8)}
    place = {"origin": np.array(ORIGIN), "spacing": np.array(SPACING)}
    np.savez_compressed(tmp_path / "p.npz", grid=VALUES, **place, **more)
    tracemalloc.start()
    check(read_pocket(str(tmp_path / "p.npz")))
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(("content", "problem"), [
    (b"something else", "no MRC or CCP4 map: it has no header"),
    (mrc_bytes()[:1000], "no MRC or CCP4 map: it has no header of 1,024 bytes with MAP"),
    (mrc_bytes()[:-1], "it ends early: 59 values where its header says 60"),
    (mrc_bytes(word_24=8), "it ends early: 58 values where its header says 60"),
    (mrc_bytes(word_24=-4), "after an extended header of -4 bytes"),
    (mrc_bytes(word_1=1 << 30), "60 values where its header says 21,474,836,480"),
    (mrc_bytes(word_2=0), r"its header says \[3, 0, 5\] values"),
    (mrc_bytes(word_8=0), "the spacing along x is inf, not positive and finite"),
    (mrc_bytes(3), r"its values are of mode 3, which is not read \(only 0, 1, 2, 6\)"),
    (mrc_bytes(word_54=0), "its machine stamp says neither little-endian nor big-endian"),
    (mrc_bytes(word_17=2), r"its header names no axes: \[2, 2, 3\]"),
    (mrc_bytes(word_11=0.0), "the spacing along x is 0, not positive"),
    (mrc_bytes(word_15=100.0), "its axes are not at right angles"),
    (mrc_bytes(**SKEWED, word_35=2.5), r"skew transformation .LSKFLG.: this is not read"),
])  # fmt: skip
def test_mrc__that_is_wrong_is_refused(store: Store, content: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_pocket(store(content, "p.mrc"))


def npy_of(shape: str) -> bytes:
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + bytes(8)


@pytest.mark.parametrize(("content", "problem"), [
    (npy_of("(1024, 1024, 1024)"), "it ends early: 8 bytes where its header says 4,294,967,29"),
    (npy_of("(-1, 2, 2)"), "no array: "),
    (npy_of("(9999999999999, 9999999999999, 9)"), "it ends early: 8 bytes"),
    (npy_of("(2, 2, ["), "no array: "),
    (b"no array at all", "no array: "),
])  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_numpy__that_says_it_is_huge_or_is_none_is_refused(
    store: Store, content: bytes, problem: str, packed: bool
) -> None:
    path = store(content, "p.npy")
    if packed:
        with zipfile.ZipFile(path := path.replace("npy", "npz"), "w") as entries:
            entries.writestr("grid.npy", content)
    tracemalloc.start()
    with pytest.raises(InputError, match=problem):
        read_pocket(path, ORIGIN, SPACING)
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


def test_numpy__what_zip_says_of_a_damaged_file_is_short(tmp_path: Path) -> None:
    """Its words repeat names of files, which are anything then."""
    np.savez(path := tmp_path / "p.npz", grid=VALUES)
    content = bytearray(path.read_bytes())
    content[26:28] = b"\xff\x0f"  # length of the first name
    path.write_bytes(content + bytes(5000))
    with pytest.raises(InputError, match=r"^(?s:.){1,600}$"):
        read_pocket(str(path), ORIGIN, SPACING)


@pytest.mark.parametrize(("arrays", "problem"), [
    ({"grid": np.array([{}], object)}, "no array: Object arrays cannot be loaded"),
    ({"grid": VALUES[0]}, r"the grid is float32\[4, 5\]: three axes are needed"),
    ({"grid": VALUES.astype("U4")}, "three axes are needed"),
    ({"grid": NAN}, r"grid index \[1, 2, 3\]"),
    ({"grid": np.full(SHAPE, np.inf)}, r"the value is inf and 59 more"),
    ({"grid": FLAT}, "1 point along y"),
    ({"origin": math.nan}, "the origin is no place: it is not finite"),
    ({"origin": np.longdouble("1e4000")}, "the origin is no place"),
    ({"origin": (0, 0)}, "its origin is not one number, or three"),
    ({"spacing": (1, math.inf, 1)}, "the spacing along y is inf, not positive and finite"),
    ({"spacing": 0}, "the spacing along x is 0, not positive"),
    ({"spacing": [[1, 1, 1]]}, "its spacing is not one number, or three"),
    ({"spacing": True}, "its spacing is not one number, or three"),
])  # fmt: skip
def test_numpy__wrong_is_refused(tmp_path: Path, arrays: dict[str, Any], problem: str) -> None:
    given = {"grid": VALUES, "origin": ORIGIN, "spacing": SPACING, **arrays}
    np.savez(tmp_path / "p.npz", **given)
    np.save(tmp_path / "p.npy", given["grid"], allow_pickle=True)
    for name, place in [("p.npz", ()), ("p.npy", (ORIGIN, SPACING))][: 1 + ("grid" in arrays)]:
        with pytest.raises(InputError, match=problem):
            read_pocket(str(tmp_path / name), *place)


def test_pocket__of_other_names_and_options_is_refused(tmp_path: Path) -> None:
    path = Path(autogrid(tmp_path))
    for name, content in (("p.dx", dx()), ("p.txt", b"ATOM")):
        (tmp_path / name).write_bytes(content)
    for name, place, problem in (
        ("p.dx", (ORIGIN, SPACING), "leave out origin and spacing"),
        ("p.txt", (), r"no pocket by its name .*: begins with 'ATOM'"),
        ("p.OA.map", (), r"one map of several: give the \.maps\.fld"),
        ("", (), "it stands for 6 pocket files: name one"),
    ):
        with pytest.raises((InputError, UsageError), match=problem):
            read_pocket(str(tmp_path / name), *place)
    path.write_text(path.read_text().replace("Desolvation", "B-affinity"))
    with pytest.raises(InputError, match=r"there is no map of desolvation \(\.d\.map\)"):
        read_pocket(str(path))


@pytest.mark.parametrize("name", ["receptor.pdbqt", "receptor.pdb.gz", "receptor"])
def test_pocket__that_is_a_receptor_says_what_to_make_of_it(store: Store, name: str) -> None:
    text = b"REMARK  prepared\nATOM      1  N   MET A   1      38.198  19.582  28.197\n"
    path = store(gzip.compress(text) if name.endswith(".gz") else text, name)
    with pytest.raises(InputError, match=r"this is a structure, .* `multigpu pocket`"):
        read_pocket(path)

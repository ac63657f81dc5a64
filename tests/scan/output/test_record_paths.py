"""Names in paths."""

from pathlib import Path

import pytest

from multigpu.errors import UsageError
from multigpu.workloads.scan.output.record_paths import RecordPaths, escape, name_of_file


def test_names__stay_different_and_in_the_folder() -> None:
    names = [
        b"", b"..", b".", b".hidden", b"a/b", b"a%2Fb", b"a b", b"caf\xe9", b"caf\xc3\xa9", b"tied",
        b"unknown", b"%75nknown", b"A=1+2@x,y_z-0.5~", b"x" * 300, b"x" * 301, b"\x00", b"{file}",
    ]  # fmt: skip
    escaped = list(map(escape, names))
    assert len(set(escaped)) == len(names)
    for each in escaped:
        assert each.isascii()
        assert each.isprintable()
        assert not {"/", " ", "{"} & set(each)
        assert each not in {"", ".", "..", "tied", "unknown"}
        assert not each.startswith(".")
        assert len(each) < 255
    assert escape(b"A=1+2@x,y_z-0.5~") == "A=1+2@x,y_z-0.5~"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("runs/lib.1.fq.gz", "lib.1"),
        ("lib.FASTQ", "lib"),
        ("https://x.org/a/lib.fa.zst?v=1.fq", "lib"),
        ("lib.txt", "lib.txt"),
        (".fq", "%2Efq"),
        ("-", "-"),
    ],
)
def test_name_of_file__has_no_folder_and_no_suffix_of_a_format(path: str, name: str) -> None:
    assert name_of_file(path) == name


def test_numbers__are_those_of_the_paths() -> None:
    values = {"file": ("a", "b"), "signature": ("x", "y", "z")}
    paths = RecordPaths("matched", "out/{signature}/{file}_{{{signature}.fq", values)
    found = paths.paths()
    assert len(paths) == len(found) == 6
    assert found[int(paths.numbers(file=1, signature=2))] == "out/z/b_{z.fq"
    assert Path(paths.title).parent == Path("out")


def test_paths__that_two_combinations_share_are_refused() -> None:
    values = {"file": ("a", "ab"), "signature": ("bc", "c")}
    paths = RecordPaths("matched", "{file}{signature}", values)
    with pytest.raises(UsageError, match="different records would go to one file, abc"):
        paths.paths()


def test_path__with_a_name_that_no_file_can_have_is_refused() -> None:
    paths = RecordPaths("matched", f"{'x' * 99}{{signature}}", {"signature": ("y", "z" * 157)})
    with pytest.raises(UsageError, match="zz has a name of more than 255 bytes"):
        paths.check([])

"""Names that are refused wherever they stand in input."""

import pytest

from multigpu.formats.names import LONGEST_NAME, name_problem


@pytest.mark.parametrize("name", ["", "a b", "café €", "x" * LONGEST_NAME, "\udcff", "a\u00a0b"])
def test_names__of_anything_printable_are_good(name: str) -> None:
    assert name_problem(name) == ""
    assert name_problem(name.encode("utf-8", "surrogateescape")) == ""


def test_names__with_control_characters_or_too_long_are_none() -> None:
    for sign in "\0\t\n\r\x1b\x7f\x80\x9b\x9f":
        problem = f"the name has the control character {sign!r}: rename it"
        assert name_problem(f"a{sign}b") == name_problem(f"a{sign}b".encode()) == problem
    for name in ((LONGEST_NAME + 1) * "x", (LONGEST_NAME // 2 + 1) * "é"):
        assert name_problem(name).startswith("the name has more than 4,096 bytes")

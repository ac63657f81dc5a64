"""Parameters in errors: names of Python from functions, options from the command line."""

from pathlib import Path
from typing import Any

import pytest
from support.program import program

import multigpu
from multigpu.run.keywords import in_python


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("--min-mapq 300: too high", "min_mapq 300: too high"),
        ("give --no-index", "give index=False"),
        ("(docker run --gpus all); or --gpus none", "(docker run --gpus all); or gpus none"),
        ("try `obabel IN --gen3d`: a--b", "try `obabel IN --gen3d`: a--b"),
    ],
)
def test_in_python__names_parameters(message: str, wanted: str) -> None:
    assert in_python(message) == wanted


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "r.fa").write_text(">r\nACGTACGT\n")
    (tmp_path / "s.fa").write_text(">s\nACGT\n")
    return str(tmp_path / "r.fa"), str(tmp_path / "s.fa")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"threads": -1}, r"^threads -1: "),
        ({"workers": -1}, r"^workers -1: "),
        ({"max_chunk_bytes": 0}, r"^max_chunk_bytes 0: "),
        ({"scheduler": ""}, r"^scheduler and scheduler_file must not be empty"),
        ({"gpus": 70}, r"^there is no GPU 70: .*; or go without: gpus none"),
        ({"gpus": [70, 71]}, r"^there is no GPU 70: "),
        ({"gpus": True}, r"^gpus is True; it must be text"),
    ],
)
def test_functions__name_parameters(
    inputs: tuple[str, str], given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(multigpu.UsageError, match=problem):
        multigpu.scan(*inputs, **given)


def test_functions__say_of_options_that_only_the_command_line_has_them(
    inputs: tuple[str, str],
) -> None:
    with pytest.raises(TypeError, match="'progress': only the command line has --progress"):
        multigpu.scan(*inputs, progress=True)


def test_command__names_options(tmp_path: Path) -> None:
    (tmp_path / "a.bam").touch()
    run = program("count", str(tmp_path / "a.bam"), "--min-mapq", "300")
    assert run.problem == "--min-mapq is 300; it must be 0 to 255"

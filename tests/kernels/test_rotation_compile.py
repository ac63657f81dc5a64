"""The CUDA source of the pose search compiles for every architecture, here without a GPU."""

import re
from itertools import product
from pathlib import Path

import pytest
from nvrtc import ARCHITECTURES, CompileError, compile_cubin

from kernels.sources import source

FOLDER = Path(__file__).resolve().parents[2] / "kernels" / "rotation"
VARIANTS = [
    dict(zip(("EULER", "LINEAR", "ZERO"), choice, strict=True))
    for choice in product((0, 1), repeat=3)
]
LAUNCH = re.compile(r'_launch\(\s*(?:self[\w.()]+, )?"(\w+)"')
KERNEL = re.compile(rb"\.text\.(\w+)\0")


def kernels_of(cubin: bytes) -> set[str]:
    """By the names of the sections that hold their code."""
    return {name.decode() for name in KERNEL.findall(cubin)}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_kernels__that_are_launched_compile_for_every_architecture(
    arch: str, variant: dict[str, int]
) -> None:
    launched = set(LAUNCH.findall((FOLDER / "cuda.py").read_text()))
    terms = 1 + VARIANTS.index(variant) % 3
    cubin = compile_cubin(source("rotation", "search.cu"), arch, {**variant, "TERMS": terms})
    assert {"pack_cells", "score", "strike", "settle"} == launched == kernels_of(cubin)


@pytest.mark.parametrize("terms", [1, 2, 3])
def test_search__compiles_for_every_number_of_terms(terms: int) -> None:
    defines = {**VARIANTS[-1], "TERMS": terms}
    assert "score" in kernels_of(compile_cubin(source("rotation", "search.cu"), "sm_90", defines))


def test_search__does_not_compile_without_its_constants() -> None:
    with pytest.raises(CompileError, match=r'identifier "TERMS" is undefined'):
        compile_cubin(source("rotation", "search.cu"), "sm_90", VARIANTS[0])


def test_constants__are_those_of_the_host() -> None:
    text = source("rotation", "search.cu")
    host = (FOLDER / "cuda.py").read_text()
    for name in ("THREADS", "TILE_A", "TILE_B"):
        (value,) = re.findall(rf"\b{name} = (\d+)[,;]", text)
        names, values = re.search(rf"^(.*\b{name}\b.*) = (.*)$", host, re.MULTILINE).groups()
        assert values.split("#")[0].split(", ")[names.split(", ").index(name)].strip() == value

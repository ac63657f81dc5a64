"""The CUDA source of the pose search compiles for every architecture, here without a GPU."""

import re
from itertools import product
from pathlib import Path

import pytest
from support.nvrtc import ARCHITECTURES, CompileError, compile_cubin

from multigpu.kernels.device.sources import source
from multigpu.kernels.rotation.bounds import KAPPAS, LEAST, SHORTFALLS, SLACK
from multigpu.kernels.rotation.types import PENALTY

FOLDER = Path(__file__).resolve().parents[3] / "kernels" / "rotation"
OUTSIDE = (
    {"ENDS": 0, "PENALTY": 0.0},
    {"ENDS": 1, "PENALTY": 0.0},
    {"ENDS": 1, "PENALTY": PENALTY},
)
VARIANTS = [
    {"EULER": euler, "LINEAR": linear, **outside}
    for euler, linear, outside in product((0, 1), (0, 1), OUTSIDE)
]
SHAPE: dict[str, float] = {"THREADS": 256, "SHARE": 2048, "TILE_A": 2, "TILE_B": 4, "TILE_C": 4}
SHAPE |= {"LEAST": LEAST, "POWERS": len(SHORTFALLS), "KAPPAS": len(KAPPAS), "SLACK": SLACK}
KERNELS = {"pack_cells", "bound", "score", "strike", "threshold", "settle", "choose", "list_better"}
LAUNCH = re.compile(r'\b_?launch\(\s*"(\w+)"')
KERNEL = re.compile(rb"\.text\.(\w+)\0")


def kernels_of(cubin: bytes) -> set[str]:
    """Return kernels by the names of the sections that hold their code."""
    return {name.decode() for name in KERNEL.findall(cubin)}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_kernels__that_are_launched_compile_for_every_architecture(
    arch: str, variant: dict[str, float]
) -> None:
    launched = set(LAUNCH.findall((FOLDER / "cuda.py").read_text()))
    terms = 1 + VARIANTS.index(variant) % 3
    cubin = compile_cubin(
        source("rotation", "search.cu"), arch, {**SHAPE, **variant, "TERMS": terms}
    )
    assert launched == KERNELS == kernels_of(cubin)


@pytest.mark.parametrize("terms", [1, 2, 3])
def test_search__compiles_for_every_number_of_terms(terms: int) -> None:
    defines = {**SHAPE, **VARIANTS[-1], "TERMS": terms}
    assert "score" in kernels_of(compile_cubin(source("rotation", "search.cu"), "sm_90", defines))


def test_search__does_not_compile_without_its_constants() -> None:
    with pytest.raises(CompileError, match=r'identifier "TERMS" is undefined'):
        compile_cubin(source("rotation", "search.cu"), "sm_90", {**SHAPE, **VARIANTS[0]})

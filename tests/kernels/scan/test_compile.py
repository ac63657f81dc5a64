"""The CUDA sources compile for every architecture, here without a GPU."""

import re
from itertools import product
from pathlib import Path

import pytest
from support.nvrtc import ARCHITECTURES, CompileError, compile_cubin

from multigpu.kernels.device.sources import source
from multigpu.kernels.scan.seeds import STRIDES

FOLDER = Path(__file__).resolve().parents[3] / "kernels" / "scan"
VARIANTS = [
    {"STRIDE": STRIDES[2], "FIRST": first, "BEST": 0, "STRICT": strict}
    for first, strict in product((0, 1), (0, 1))
]
SWEEP = {"PLACES": 32, "ROWS": 192, "COUNTERS": 6, "LOOK": 4}
DEFINES: dict[str, dict[str, object]] = {
    "pack.cu": {},
    "search.cu": {**VARIANTS[2]},
    "sweep.cu": {**VARIANTS[2], **SWEEP},
}
LAUNCH = re.compile(r'launch(?:_blocks)?\(\s*(?:compiled\("pack.cu"\)|[\w.]+), "(\w+)"')
LAUNCH_APPROXIMATE = re.compile(r'"((?:count|find|place|fill)_\w+)"')
KERNEL = re.compile(rb"\.text\.(\w+)\0")


def kernels_of(cubin: bytes) -> set[str]:
    """Return kernels by the names of the sections that hold their code."""
    return {name.decode() for name in KERNEL.findall(cubin)}


def test_sources__are_all_compiled_here() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.cu")) == sorted(DEFINES)


@pytest.mark.parametrize("name", DEFINES)
def test_source__has_its_includes_in_place_each_once(name: str) -> None:
    text = source("scan", name)
    assert '#include "' not in text
    assert text.count((FOLDER / "planes.cuh").read_text()) == 1


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels__that_are_launched_compile_for_every_architecture(arch: str) -> None:
    launched = set(LAUNCH.findall((FOLDER / "cuda.py").read_text()))
    compiled = [
        kernels_of(compile_cubin(source("scan", name), arch, DEFINES[name])) for name in DEFINES
    ]
    assert launched == set.union(*compiled)
    assert {"pack", "probe"} <= launched


@pytest.mark.parametrize("stride", STRIDES)
def test_search__compiles_for_every_stride(stride: int) -> None:
    cubin = compile_cubin(
        source("scan", "search.cu"), "sm_90", {**DEFINES["search.cu"], "STRIDE": stride}
    )
    assert "probe" in kernels_of(cubin)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_search__compiles_for_first_and_all_hits_strict_or_not(variant: dict[str, object]) -> None:
    assert "probe" in kernels_of(compile_cubin(source("scan", "search.cu"), "sm_90", variant))


def test_search__does_not_compile_without_its_constants() -> None:
    with pytest.raises(CompileError, match=r'identifier "STRIDE" is undefined'):
        compile_cubin(source("scan", "search.cu"), "sm_90", {"FIRST": 1, "BEST": 0, "STRICT": 0})


APPROXIMATE = {
    "edits.cu": {},
    "seed_tables.cu": {},
    "seeds.cu": {"EDITS": 0},
}


def test_approximate_sources__are_all_compiled_here() -> None:
    folder = FOLDER / "approximate"
    assert sorted(path.name for path in folder.glob("*.cu")) == sorted(APPROXIMATE)


@pytest.mark.parametrize("strict", [0, 1])
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximate_kernels__compile_for_every_architecture(
    name: str, arch: str, strict: int
) -> None:
    defines = {"FIRST": 0, "BEST": 0, "STRICT": strict, **APPROXIMATE[name]}
    cubin = compile_cubin(source("scan", f"approximate/{name}"), arch, defines)
    launched = LAUNCH_APPROXIMATE.findall((FOLDER / "approximate/cuda.py").read_text())
    assert kernels_of(cubin) - {"collect"} <= set(launched)
    assert kernels_of(cubin)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_seeds__compile_for_edits(arch: str) -> None:
    defines = {"FIRST": 0, "BEST": 0, "STRICT": 0, "EDITS": 1}
    assert kernels_of(compile_cubin(source("scan", "approximate/seeds.cu"), arch, defines))

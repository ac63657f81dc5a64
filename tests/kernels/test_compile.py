"""The CUDA sources compile for every architecture, here without a GPU."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.nvrtc import ARCHITECTURES, CompileError, compile_cubin

from multigpu.kernels.device.launch import source
from multigpu.kernels.maps.autogrid import DEFINES
from multigpu.kernels.rotation.bounds import KAPPAS, LEAST, SHORTFALLS, SLACK
from multigpu.kernels.rotation.refine.pattern import constants
from multigpu.kernels.rotation.types import PENALTY
from multigpu.kernels.scan.seeds import STRIDES

pytestmark = pytest.mark.emulated

FOLDER = Path(__file__).resolve().parents[2] / "kernels"
KERNEL = re.compile(rb"\.text\.(\w+)\0")  # sections of a cubin

Defines = dict[str, Any]


def every(**choices: tuple[Any, ...]) -> list[Defines]:
    """Return all combinations of values of macros."""
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def model(samples: int, team: int, shared: int = 0, unit: int = 1, count: str = "int") -> Defines:
    sizes = {"SAMPLES": samples, "CLASSES": 9, "TEAM": team, "SHARED": shared}
    return {**sizes, "UNIT": unit, "COUNT": count}


POSES: Defines = {"THREADS": 256, "SHARE": 2048, "TILE_A": 2, "TILE_B": 4, "TILE_C": 4}
POSES |= {"LEAST": LEAST, "POWERS": len(SHORTFALLS), "KAPPAS": len(KAPPAS), "SLACK": SLACK}
OUTSIDE = ((0, 0.0), (1, 0.0), (1, PENALTY))
FIELDS: list[Defines] = [
    {**POSES, **euler_and_linear, "ENDS": ends, "PENALTY": penalty, "TERMS": 1 + k % 3}
    for k, (euler_and_linear, (ends, penalty)) in enumerate(
        product(every(EULER=(0, 1), LINEAR=(0, 1)), OUTSIDE)
    )
]
HITS = every(STRICT=(0, 1), FIRST=(0,), BEST=(0,))
VARIANTS: dict[str, list[Defines]] = {
    "cnmops/model.cu": [
        model(15, 4), model(2, 1, 0, 0, "double"), model(256, 32), model(2500, 256, 1),
        model(5000, 256, 0, 0),
    ],
    "hmm/expect.cu": [
        {"COUNT": count, "REFERENCES": k, "CUT": k // 5, "SPREAD": spread}
        for count, k, spread in (("int", 10, 15), ("double", 64, 64))
    ],
    "hmm/paths.cu": every(COUNT=("int", "double")),
    "maps/maps.cu": [DEFINES],
    "normalization/measure.cu": every(COUNT=("int", "double")),
    "rotation/cells.cu": FIELDS[3:4],
    "rotation/refine/refine.cu": [
        {**constants(), "EULER": 0, "LINEAR": linear, "ENDS": ends, "PENALTY": penalty, "TERMS": 2}
        for linear, (ends, penalty) in product((0, 1), OUTSIDE)
    ],
    "rotation/search.cu": FIELDS,
    "rotation/whole_box/search.cu": [
        {**each, "THREADS": 64, "BOUNDED": 64} for each in FIELDS[::2]
    ],
    "scan/pack.cu": [{}],
    "scan/search.cu": [
        *every(STRIDE=(STRIDES[2],), FIRST=(0, 1), BEST=(0,), STRICT=(0, 1)),
        *every(STRIDE=tuple(STRIDES), FIRST=(1,), BEST=(0,), STRICT=(0,)),
    ],
    "scan/sweep.cu": [
        {"STRIDE": STRIDES[2], **each, "PLACES": 32, "ROWS": 192, "COUNTERS": 6, "LOOK": 4}
        for each in [*HITS, *every(STRICT=(0,), FIRST=(1,), BEST=(0, 1))]
    ],
    "scan/approximate/edits.cu": HITS,
    "scan/approximate/seed_tables.cu": HITS,
    "scan/approximate/seeds.cu": [{**each, "EDITS": edits} for each in HITS for edits in (0, 1)],
    "segmentation/spans.cu": [{}],
    "segmentation/statistic.cu": [{}],
}  # fmt: skip


def kernels_of(name: str, arch: str, defines: Defines) -> set[str]:
    """Return the kernels that a source is compiled to."""
    folder, _, file = name.partition("/")
    cubin = compile_cubin(source(folder, file), arch, defines)
    return {kernel.decode() for kernel in KERNEL.findall(cubin)}


def test_sources__are_all_compiled_here() -> None:
    assert {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.cu")} == set(VARIANTS)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", VARIANTS)
def test_kernels__compile_for_every_architecture_and_are_launched(name: str, arch: str) -> None:
    folders = [FOLDER / name.partition("/")[0], (FOLDER / name).parent]
    host = "".join(path.read_text() for folder in folders for path in folder.glob("cuda*.py"))
    for defines in VARIANTS[name]:
        found = kernels_of(name, arch, defines)
        assert found
        assert [kernel for kernel in found if f'"{kernel}"' not in host] == []


@pytest.mark.parametrize(
    ("name", "missing"), [("scan/search.cu", "STRIDE"), ("rotation/search.cu", "TERMS")]
)
def test_source__does_not_compile_without_its_constants(name: str, missing: str) -> None:
    defines = {key: value for key, value in VARIANTS[name][0].items() if key != missing}
    with pytest.raises(CompileError, match=f'identifier "{missing}" is undefined'):
        kernels_of(name, "sm_90", defines)


@pytest.mark.parametrize("name", ["pack.cu", "search.cu"])
def test_source__has_its_includes_in_place_each_once(name: str) -> None:
    text = source("scan", name)
    assert '#include "' not in text
    assert text.count((FOLDER / "scan" / "planes.cuh").read_text()) == 1

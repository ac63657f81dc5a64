"""The parts of chromosomes put together."""

import numpy as np
from support.cohorts import CPU

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts
from multigpu.workloads.cnv.job import CnvJob
from multigpu.workloads.cnv.options import CnvOptions


def nested(compat_r: bool) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Places of CNVs and of CNV regions where target 21 of the second chromosome lies in 20."""
    rng = np.random.default_rng(0)
    start = np.tile(np.arange(60) * 1000, 2)
    end = start + 900
    start[81], end[81], end[80] = start[80] + 100, start[80] + 200, start[80] + 1800
    values = rng.poisson(400, (120, 8)).astype(np.int32)
    values[70:81, 0] = rng.poisson(200, 11)
    values[75:82, 1] = rng.poisson(200, 7)
    chrom = np.repeat(np.arange(2, dtype=np.int32), 60)
    table = Counts(Regions(("a", "b"), chrom, start, end), tuple("stuvwxyz"), values, ())
    options = CnvOptions(seg_median=(0.3, -0.5), compat_r=compat_r)
    found = CnvJob(table, options, CPU).result()
    tables = found.cnvs.to_pylist(), found.cnv_regions.to_pylist()
    assert {row["chrom"] for rows in tables for row in rows} == {"b"}
    cnvs, regions = ([(row["start"], row["end"]) for row in rows] for rows in tables)
    return cnvs, regions


def test_ends__are_those_of_the_farthest_region_and_in_r_of_the_last() -> None:
    assert nested(compat_r=False) == ([(10_000, 21_800), (15_000, 21_800)], [(10_000, 21_800)])
    assert nested(compat_r=True) == ([(10_000, 21_800), (15_000, 20_200)], [(10_000, 20_200)])

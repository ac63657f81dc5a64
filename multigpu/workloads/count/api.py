"""The Python function `multigpu.count`."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from multigpu.formats.alignments.files import files_of
from multigpu.formats.tables.counts import Counts
from multigpu.run.job import Paths, path_list
from multigpu.run.keywords import in_python, parameters_named, run_options
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.options import WINDOW, CountOptions


@parameters_named()
def count(
    files: Paths,
    *,
    window: int = WINDOW,
    chromosomes: Sequence[str] = (),
    regions: str | os.PathLike[str] | None = None,
    sample_names: Sequence[str] = (),
    min_mapq: int = 1,
    remove_duplicates: bool = False,
    read_width: int = 1,
    get_width: bool = False,
    stranded_start: bool = False,
    rename: Any = "none",
    compat_r: bool = False,
    index: bool = True,
    cache: str | os.PathLike[str] | None = None,
    client: Any = None,
    **run: Any,
) -> Counts:
    """Return the number of reads of BAM or CRAM files in windows or regions.

    files    one file a sample, all with the same references
    client   a `dask.distributed.Client` to use instead of this machine
    run      fields of `multigpu.run.options.RunOptions`, and `workers`: the number of worker
             processes on this machine; GPUs are not used
    others   as in `multigpu.workloads.count.options.CountOptions` and
             `multigpu.kernels.counting.types.Counting`

    Raises UsageError and InputError for what is wrong with options and files.
    """
    running = run_options(count, run)
    options = CountOptions.of(
        window=window,
        chromosomes=chromosomes,
        regions=regions,
        sample_names=sample_names,
        min_mapq=min_mapq,
        remove_duplicates=remove_duplicates,
        read_width=read_width,
        get_width=get_width,
        stranded_start=stranded_start,
        rename=rename,
        compat_r=compat_r,
        index=index,
        cache=cache,
    )
    counts = CountJob(files_of(path_list(files)), options, running, client).counts()
    return replace(counts, notes=tuple(map(in_python, counts.notes)))

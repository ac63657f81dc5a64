"""The Python function `multigpu.scan` and its result."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from multigpu.formats.tables.batch import Batch
from multigpu.formats.tables.writers import to_arrow, with_columns
from multigpu.run.job import Paths, journal_path, path_list
from multigpu.run.keywords import parameters_named, run_options
from multigpu.workloads.scan.inputs import expand_inputs
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.options import ScanOptions

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class ScanResult:
    """The rows of a scan, computed as they are taken; they can be taken once.

    Raises UsageError where they were taken already.
    """

    def __init__(self, job: ScanJob) -> None:
        self._job = job
        self.signature_names = [name.decode("utf-8", "replace") for name in job.signatures.names]

    def __repr__(self) -> str:
        return (
            f"<ScanResult: {len(self.signature_names):,} signatures,"
            f" {len(self._job.sources):,} sample files; iterate over it, or call to_table()>"
        )

    def __iter__(self) -> Iterator[Batch]:
        """Return the batches in the order of the input; `sample_index` counts through all of it."""
        self._job.take_once("rows", "multigpu.scan")
        return self._batches()

    def _batches(self) -> Iterator[Batch]:
        with parameters_named(), self._job.keep_journal():
            for rows in self._job.rows():
                assert isinstance(rows, Batch)  # no text format was asked for
                yield rows

    def to_table(self) -> "pa.Table":
        """Return all rows as a pyarrow table with the columns of the Parquet output."""
        fmt = with_columns("parquet", self._job.options.error_columns)
        return to_arrow(Batch.concatenate(list(self)), self._job.signatures.names, fmt)

    def to_pandas(self) -> "pd.DataFrame":
        """Return all rows as a pandas frame with the columns of the Parquet output."""
        return self.to_table().to_pandas()


@parameters_named()
def scan(
    samples: Paths,
    signatures: Paths,
    *,
    gpus: str | int | Sequence[str | int] = "auto",
    client: Any = None,
    journal: str | os.PathLike[str] | None = None,
    hits: Any = "first",
    strand: Any = "forward",
    sample_n: Any = "match",
    min_score: float | None = None,
    phred_offset: int = 33,
    max_ambiguous: float | None = None,
    max_mismatches: float | None = None,
    max_edits: float | None = None,
    exact_prefix: int = 0,
    exact_suffix: int = 0,
    **run: Any,
) -> ScanResult:
    """Return which signatures occur where in which samples, with the mean quality of each match.

    samples, signatures  files, directories, patterns, URLs (FASTQ or FASTA, gzip, zstd)
    gpus                 auto, all, none, or numbers and UUIDs as in `--gpus`, or a list
    client               a `dask.distributed.Client` to use instead of this machine
    journal              a file that keeps what is finished, until all rows were taken; with
                         `resume=True` a scan that was stopped continues from it
    hits                 "first": the lowest start of each sample and signature (with edits the
                         lowest end), "best": the fewest errors, then as first, or "all"
    strand               "forward" or "both"
    sample_n             "match" or "mismatch": whether ambiguous sample bases may match others
    min_score            drop rows with a lower mean quality
    phred_offset         33, or 64 for old files
    max_ambiguous        most ambiguous sample bases of a match: an int, or as a float below 1 a
                         share of its length
    max_mismatches       most bases of a signature that do not match, likewise
    max_edits            most substitutions, insertions and deletions; one of the two
    exact_prefix         bases at the start of a signature that must match, without a gap inside
    exact_suffix         and at its end
    run                  fields of `multigpu.run.options.RunOptions`, and `workers`: the number of
                         worker processes on this machine

    Raises UsageError and InputError here for what is wrong with the options and the files'
    beginnings, and from the iteration for what shows later.
    """
    options = ScanOptions(
        hits=hits,
        strand=strand,
        sample_n=sample_n,
        min_score=min_score,
        phred_offset=phred_offset,
        max_ambiguous=max_ambiguous,
        max_mismatches=max_mismatches,
        max_edits=max_edits,
        exact_prefix=exact_prefix,
        exact_suffix=exact_suffix,
    )
    running = run_options(scan, {"gpus": gpus, **run})
    place = journal_path(journal)
    inputs = expand_inputs(path_list(samples, "samples"), path_list(signatures, "signatures"))
    return ScanResult(ScanJob(inputs, options, running, client=client, journal=place))

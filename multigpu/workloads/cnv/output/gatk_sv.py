"""BED files of a batch, as GATK-SV's workflow CNMOPS.wdl names and writes them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from multigpu.formats.tables.counts import sample_of_file
from multigpu.formats.tables.tabix import write_indexed
from multigpu.workloads.cnv.gatk_sv import BatchCalls, BatchJob, CallSet

COLUMNS = ("#chr", "start", "end", "name", "sample", "svtype", "sources")


def write_batch(
    calls: Mapping[tuple[CallSet, str], BatchCalls], job: BatchJob, folder: Path, matrix: str
) -> None:
    """Write the calls of each set and type, and their index: `BATCH.DEL.header.bed.gz`.

    matrix  path of the counts, whose name begins with that of the batch
    """
    batch = sample_of_file(matrix)
    for (of, kind), table in calls.items():
        path = folder / f"{batch}.{kind}.{of.name}.bed.gz"
        end = int(table.end.max(initial=0))
        write_indexed(path, _bed(table, job, f"{batch}_{kind}_", kind, of.source), end, "bed")


def _bed(calls: BatchCalls, job: BatchJob, prefix: str, kind: str, source: str) -> Iterator[bytes]:
    """Yield the header, and the calls by place; those that begin together by their text."""
    yield "\t".join(COLUMNS).encode() + b"\n"
    samples = sorted(job.cohort.cases)
    columns = (calls.sample, calls.chrom, calls.start, calls.end, calls.number)
    lines = []
    for sample, chrom, start, end, number in zip(*(x.tolist() for x in columns), strict=True):
        place = f"{job.chromosomes[chrom]}\t{start}\t{end}"
        line = f"{place}\t{prefix}{number}\t{samples[sample]}\t{kind}\t{source}\n"
        lines.append((chrom, start, line.encode()))
    yield b"".join(line for *_, line in sorted(lines))

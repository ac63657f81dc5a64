"""The command `multigpu cnv`."""

from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from multigpu.cluster.files import failures_named
from multigpu.errors import UsageError, option, spelled
from multigpu.run.command import Reporting, command_of, keep_inputs, number_of, start_workers
from multigpu.run.values import texts_of
from multigpu.workloads.cnv.options import (
    GATK_SV,
    CnvOutput,
    copy_number_lanes,
    estimate_count_bytes,
)
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.count.command import count_alignments

if TYPE_CHECKING:
    from multigpu.workloads.cnv.results.result import CnvResult


@command_of(example="multigpu cnv *.bam --regions panel.bed --preset panel -o calls")
def command(request: CnvRequest, outputs: CnvOutput, reporting: Reporting) -> None:
    """Call copy-number variants by cn.MOPS or a hidden Markov model.

    INPUT is tables of read counts (of `multigpu count`, GATK, mosdepth, CNVkit and others), or BAM
    and CRAM files, one a sample, which are counted first; or directories, lists and sample sheets
    of them. DIR gets CNVs, CNV regions and segments as tables, VCF, BED and SEG, the quality of the
    samples, the matrices as a Zarr store, and a report.
    """
    given = [request.counts_or_bams, request.controls or (), request.cohort or ()]
    lanes = copy_number_lanes(sum(estimate_count_bytes(paths, request) for paths in given))
    with start_workers(request.run, reporting, lanes) as workers:
        # Workers start while the modules of the run load.
        from multigpu.formats.sequences.indexed_fasta import IndexedFasta, check_sequences
        from multigpu.formats.tables.counts_files import write_counts
        from multigpu.workloads.cnv.opening import open_job
        from multigpu.workloads.cnv.output import files, folder, vcf
        from multigpu.workloads.cnv.output.summary import write_cnv_summary
        from multigpu.workloads.cnv.results import matrices

        _check_files(request, outputs, reporting)
        if request.preset == GATK_SV:
            _call_batch(request, outputs, reporting, lanes=lanes, coming=workers)
            return
        genome = IndexedFasta(outputs.reference) if outputs.reference else None
        with folder.output_folder(outputs.output, request.resume) as hidden:
            job = open_job(
                request,
                keep_in=str(hidden / folder.KEPT_COUNTS),
                # The log is that of the calls.
                count=partial(count_alignments, replace(reporting, log_json=None)),
                keep_counts=partial(write_counts, str(hidden / folder.COUNTS)),
                lanes=lanes,
                coming=workers,
                journal=hidden / folder.JOURNAL,
            )
            if outputs.vcf:
                vcf.check_names(job.cohort.regions.names)
            if genome is not None:
                cohort = job.cohort
                check_sequences(genome.path, genome.lengths, cohort.regions, cohort.told_lengths)
            with reporting.watch(job, "cnv", job.stats.progress):
                store = folder.store_path(hidden) if outputs.matrices else None
                keep = matrices.names(request.posterior) if store else ()
                found = job.result(keep, store, outputs.report, hidden)
                result = files.write_files(found, hidden, outputs, request, genome)
                job.published = True
                if reporting.summary:
                    write_cnv_summary(
                        reporting.summary, job, result, request, outputs.output, reporting.started
                    )
    _print_result(result, outputs, reporting)


def _call_batch(
    request: CnvRequest, outputs: CnvOutput, reporting: Reporting, **settings: Any
) -> None:
    from multigpu.workloads.cnv.gatk_sv import open_batch, write_batch
    from multigpu.workloads.cnv.output import folder

    wanted = [name for name in sorted(outputs.given - {"output"}) if getattr(outputs, name)]
    for name in [*wanted, *(["summary"] if reporting.summary else [])]:
        raise UsageError(f"{option(name)} has no effect with {option('preset')} {GATK_SV}")
    with folder.output_folder(outputs.output, request.resume) as hidden:
        job = open_batch(request, journal=hidden / folder.JOURNAL, **settings)
        with reporting.watch(job, "cnv", job.stats.progress):
            calls = job.calls(hidden)
            with failures_named(outputs.output):
                write_batch(calls, job, hidden, request.paths[0])
                removed = folder.publish(hidden)
            job.published = True
    if removed:
        job.notes.append(f"removed, left by an earlier run: {', '.join(removed)}")
    reporting.say(*(f"note: {spelled(note)}" for note in job.notes))
    losses, gains = (
        number_of(sum(len(each) for (_, of), each in calls.items() if of == kind), noun)
        for kind, noun in (("DEL", "loss"), ("DUP", "gain"))
    )
    reporting.say_outcome(f"{losses} and {gains}", outputs.output)


def _check_files(request: CnvRequest, outputs: CnvOutput, reporting: Reporting) -> None:
    """Raise UsageError for outputs that cannot be written, or would replace an input."""
    from multigpu.formats.storage.sources import ALIGNMENTS
    from multigpu.formats.tables.counts_zarr import is_store
    from multigpu.workloads.cnv.output.folder import COUNTS, FILES, REPORT

    if request.posterior and not outputs.matrices:
        raise UsageError(f"{option('posterior')} has no effect without {option('matrices')}")
    for path in texts_of(request.counts_or_bams, "counts_or_bams"):
        if path.endswith(".html"):
            place = str(Path(outputs.output) / REPORT)
            raise UsageError(f"{path} is no input: {option('report')} has no value, and is {place}")
    others = [request.regions, request.ploidy, request.sex, outputs.reference]
    others += request.filter_files
    inputs = [path for path in (*request.paths, *others) if path]
    names = [*FILES, COUNTS] if request.cases.is_alignments else FILES
    written = [str(Path(outputs.output) / name) for name in names]
    given = [
        *texts_of(request.counts_or_bams, "counts_or_bams"),
        *texts_of(request.controls or (), "controls"),
    ]
    others = reporting.check_outputs()
    keep_inputs(inputs, *others, *written, given=given, kind=ALIGNMENTS)
    keep_inputs((), *others, outputs.output)
    folder = Path(outputs.output or "/").absolute()
    if any(is_store(str(path)) for path in (folder, folder.parent)):
        problem = "a cohort, or matrices of a run, whose folder may be replaced"
        raise UsageError(f"{outputs.output} is in {problem}: give another folder")
    if any(folder == Path(path).absolute().parent for path in inputs):
        note = f"results stand among the inputs in {outputs.output}: -o NEWFOLDER keeps them apart"
        reporting.say(f"note: {note}")


def _print_result(result: "CnvResult", outputs: CnvOutput, reporting: Reporting) -> None:
    reporting.say(*(f"note: {note}" for note in result.notes))
    carriers = len(set(result.called.sample.tolist()))
    found = f"{number_of(len(result.called), 'CNV')} in {carriers:,} of"
    found += f" {number_of(len(result.samples), 'sample')}"
    found += f", {number_of(len(result.called_regions), 'CNV region')}"
    place = outputs.output
    if outputs.report:
        place = f"{place}: open {PurePath(place) / 'report.html'} in a browser"
    reporting.say_outcome(found, place)

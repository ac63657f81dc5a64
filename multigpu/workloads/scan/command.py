"""`multigpu scan`."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from multigpu.cluster.files import is_replaced, scratch_folder
from multigpu.formats.storage.suffixes import suffix_of_output
from multigpu.run.command import Reporting, command_of, keep_inputs, number_of, start_workers
from multigpu.run.values import texts_of
from multigpu.workloads.scan.options import ScanOutput, is_fasta
from multigpu.workloads.scan.request import ScanRequest


@command_of(example="multigpu scan reads.fastq.gz -s signatures.fasta -o matches.tsv")
def command(request: ScanRequest, out: ScanOutput, reporting: Reporting) -> None:
    """Find which SIGNATURES occur where in which SAMPLES, with the mean quality of each match.

    SAMPLES are FASTQ, FASTA, BAM or CRAM files, directories, quoted patterns, URLs or - for
    standard input, plain or compressed with gzip or zstd. Without any, generated samples are
    scanned.
    """
    scanning, output = request.options, out.main
    written = reporting.check_outputs(out.output, *out.others)
    from multigpu.workloads.scan.inputs import inputs_of, paths_in, refuse_strays

    with ExitStack() as stack:
        if not request.samples and not request.signatures and request.options.sample_sheet is None:
            request = _demo(request, stack.enter_context(scratch_folder()))
            reporting.say("no samples given: scanning generated ones")
        inputs = inputs_of(request)
        workers = stack.enter_context(start_workers(request.run, reporting, inputs.lanes))
        # GPUs start in threads of their own, while the rest of the program loads.
        from multigpu.cluster.engine.journal import journal_of
        from multigpu.formats.sequences.registry import SEQUENCES
        from multigpu.formats.storage.sources import is_repeatable
        from multigpu.workloads.scan.job import ScanJob
        from multigpu.workloads.scan.notes import notes_on_format
        from multigpu.workloads.scan.output.record_sink import RecordSink
        from multigpu.workloads.scan.output.registry import format_of
        from multigpu.workloads.scan.output.sinks import sinks_of, write_outputs

        given = [*texts_of(request.samples, "samples"), *texts_of(request.signatures, "signatures")]
        read = [*paths_in([*inputs.samples, *inputs.signatures]), *scanning.index_files]
        read += filter(None, [scanning.sample_sheet])
        keep_inputs(read, *written, *out.templates, given=given, kind=SEQUENCES)
        fmt = format_of(out.output, out.format)
        kept = output and is_replaced(output) and all(map(is_repeatable, inputs.files))
        job = ScanJob(
            inputs,
            scanning,
            request.run,
            coming=workers,
            journal=journal_of(output) if output and kept else None,
            whole_records=bool(out.templates) or any(map(is_fasta, out.amplicon_paths)),
        )
        words = click.get_current_context().obj  # the command line
        refuse_strays(words, texts_of(request.samples, "samples"), job.sources)
        if out.has_rows:
            job.notes_before += notes_on_format(fmt, output, out.ambiguous)
        with reporting.watch(job, "scan", lambda: f"{job.stats.hits:,} matches", output):
            sinks = sinks_of(job, out, fmt)
            for sink in sinks:
                if isinstance(sink, RecordSink):
                    keep_inputs(read, *written, *sink.paths, given=given, kind=SEQUENCES)
            write_outputs(job, sinks)
            job.published = True
            reporting.write_summary(
                job, output, fmt.name if out.has_rows else suffix_of_output(output)[1:]
            )
        records = number_of(job.stats.records, "sample")
        place = output if out.has_rows or out.others else out.templates[0]
        reporting.say_outcome(f"{number_of(job.stats.hits, 'match')} in {records}", place)


def _demo(request: ScanRequest, folder: str) -> ScanRequest:
    """Return the request with samples and signatures that are generated in a folder."""
    from multigpu.workloads.scan.simulate import write_demo

    samples, signatures = write_demo(Path(folder))
    return replace(request, samples=(samples,), signatures=(signatures,))

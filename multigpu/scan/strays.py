"""`-s a.fa b.fa`: b.fa is a sample for the command line, and a signature for who wrote that."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from multigpu.errors import UsageError

if TYPE_CHECKING:
    from multigpu.formats.sequences.signatures import Signatures
    from multigpu.formats.storage.sources import Source

ARGUMENTS = "multigpu.arguments"
SIGNATURE_OPTIONS = ("-s", "--signatures")
JOINED = ("-s", "--signatures=")  # what an argument begins with that has the value, too
LOOKED_THROUGH = 1 << 20  # stored bytes of a file whose records are compared with the signatures


class KeepsOrder(click.Command):
    """A command that remembers in which order its arguments and options were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)


def refuse_strays(
    samples: Sequence[str], sources: "Sequence[Source]", signatures: "Signatures"
) -> None:
    """Raises UsageError for a FASTA sample that is likely to be meant as a file of signatures.

    It follows the value of -s directly, and another sample stands before it, or another sample is
    FASTQ, or it is one of several samples and has no record longer than the longest signature.
    FASTA samples are never refused where all samples stand before the first -s.
    """
    by_path = {source.path: source for source in sources}
    for path in _after_signatures(click.get_current_context().meta[ARGUMENTS]):
        source = by_path.get(path)
        if source is None or source.layout != "fasta" or path not in samples:
            continue
        layouts = {other.layout for other in sources}
        if path != samples[0] or "fastq" in layouts or _is_alike(source, sources, signatures):
            raise UsageError(
                f"{path} follows the value of -s, but would be scanned as a sample: repeat -s"
                f" for each file of signatures (-s FILE -s {path}), or put all SAMPLES before"
                " the first -s"
            )


def _after_signatures(arguments: Sequence[Any]) -> list[str]:
    """Arguments that directly follow the value of -s."""
    after = []
    for at, argument in enumerate(arguments):
        width = 2 if argument in SIGNATURE_OPTIONS else 1
        if width == 2 or argument.startswith(JOINED):
            after += [each for each in arguments[at + width : at + width + 1] if each[:1] != "-"]
    return after


def _is_alike(source: "Source", sources: "Sequence[Source]", signatures: "Signatures") -> bool:
    """Whether one of several samples has no record longer than the longest signature."""
    from multigpu.formats.sequences.signatures import read_signatures

    if len(sources) < 2 or not source.cuttable or (source.size or 0) > LOOKED_THROUGH:
        return False
    longest = max(map(len, read_signatures([source.path]).letters))
    return longest <= max(map(len, signatures.letters))

"""`-s a.fa b.fa`: for the command line b.fa is a sample, but it was meant as signatures."""

from collections.abc import Sequence

from multigpu.errors import UsageError
from multigpu.formats.sequences.signatures import Signatures, read_signatures
from multigpu.formats.storage.sources import Source

SIGNATURE_OPTIONS = ("-s", "--signatures")
JOINED = ("-s", "--signatures=")  # beginnings of an argument that contains the value
MOST_COMPARED = 1 << 20  # stored bytes of a file whose records are compared with the signatures


def refuse_strays(
    arguments: Sequence[str],
    samples: Sequence[str],
    sources: Sequence[Source],
    signatures: Signatures,
) -> None:
    """Raise UsageError for a FASTA sample that is likely to be meant as a file of signatures.

    The sample follows the value of -s directly, and another sample stands before it, or another
    sample is FASTQ, or it is one of several samples and has no record longer than the longest
    signature. FASTA samples are never refused where all samples stand before the first -s.

    arguments  of the command line, in their order
    samples    those among them that are samples
    """
    by_path = {file.path: file for source in sources for file in source.files}
    for path in _after_signatures(arguments):
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


def _after_signatures(arguments: Sequence[str]) -> list[str]:
    """Return the arguments that directly follow the value of -s."""
    after = []
    for at, argument in enumerate(arguments):
        width = 2 if argument in SIGNATURE_OPTIONS else 1
        if width == 2 or argument.startswith(JOINED):
            after += [each for each in arguments[at + width : at + width + 1] if each[:1] != "-"]
    return after


def _is_alike(source: Source, sources: Sequence[Source], signatures: Signatures) -> bool:
    """Return whether one of several samples has no record longer than the longest signature."""
    if len(sources) < 2 or not source.cuttable or (source.size or 0) > MOST_COMPARED:
        return False
    longest = max(map(len, read_signatures([source.path]).letters))
    return longest <= max(map(len, signatures.letters))

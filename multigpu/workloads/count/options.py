"""Options of a count, as one frozen object."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from multigpu.errors import UsageError, option
from multigpu.formats.alignments.regions import LONGEST
from multigpu.kernels.counting.types import Counting
from multigpu.run.declarations import Options, declare
from multigpu.run.values import Bases, FilePath, Kind, NameList, TextPath, choice

WINDOW = 25_000  # bases
SAM_FLAGS = {  # as samtools calls them
    "PAIRED": 0x1, "PROPER_PAIR": 0x2, "UNMAP": 0x4, "MUNMAP": 0x8, "REVERSE": 0x10,
    "MREVERSE": 0x20, "READ1": 0x40, "READ2": 0x80, "SECONDARY": 0x100, "QCFAIL": 0x200,
    "DUP": 0x400, "SUPPLEMENTARY": 0x800,
}  # fmt: skip


def _sam_flags(value: Any) -> int:
    """Return flags of SAM, given as a number, or as a text of a number or of names."""
    if isinstance(value, str):
        names = {*value.upper().split(",")}
        if names <= SAM_FLAGS.keys():
            return sum(SAM_FLAGS[name] for name in names)
        try:
            value = int(value, 0)
        except ValueError:
            raise ValueError from None  # the kind's own words say what it must be
    if type(value) is not int or not 0 <= value < 1 << 12:
        raise ValueError
    return value


MUST = "flags of SAM, e.g. 1796, 0x704 or SECONDARY,DUP"
SamFlags = Annotated[int | str, Kind(MUST, "FLAGS", _sam_flags, _sam_flags)]
CompatR = Annotated[bool, choice({"none": False, "r": True}, in_python=True)]
COMPAT_R = "r: repeat the errors of R, for comparisons with it; `cnv` infers no sexes then."


@dataclass(frozen=True, kw_only=True)
class CountOptions(Options, group="Counting"):
    """Regions and reads of a count."""

    window: Bases = declare(
        WINDOW, "Width of the windows to count in, in bases, or as 25kb.", "BASES", at_least=1,
        at_most=LONGEST - 1, r="WL",
    )  # fmt: skip
    chromosomes: NameList = declare(
        (), "References to count in, in this order.", default="all", r="refSeqNames"
    )
    regions: FilePath | None = declare(
        None, "BED file with regions to count in, instead of windows; with a table `cnv` takes"
        " their names.", "BED", r="GR",
    )  # fmt: skip
    sample_names: NameList = declare(
        (), "Names of the samples, one a file; @RG: the names (SM) in the files' read groups.",
        default="the files' names without suffix", r="sampleNames",
    )  # fmt: skip
    rename: Literal["none", "auto"] = declare(
        "none", "auto: treat chromosome names that differ by `chr` as the same."
    )
    compat_r: CompatR = declare(False, COMPAT_R, flag="compat", also=("compat",), default="none")
    index: bool = declare(
        True, "Use the indexes of BAM files that have one, or read every file from start to end."
    )
    min_mapq: int = declare(
        1, "Lowest mapping quality of a read that counts, 0 to 255.", "Q", at_least=0, at_most=255,
        r="min.mapq",
    )  # fmt: skip
    remove_duplicates: bool = declare(
        False, "Count only the first of the reads with one position and strand.", r="remove.dup"
    )
    read_width: Bases = declare(
        1, "Bases that a read covers, from its position on.", "BASES", at_least=1,
        at_most=LONGEST - 1, r="read.width",
    )  # fmt: skip
    get_width: bool = declare(
        False, f"Let a read cover its own length instead of {option('read_width')}.", r="get.width"
    )
    stranded_start: bool = declare(
        False, "Let a reverse read cover the last bases of its length.", r="stranded.start"
    )
    aligned_width: bool = declare(
        False, "Let a read cover all from its first to its last mapped base, as `samtools view -c"
        " BAM REGION` does.",
    )  # fmt: skip
    exclude_flags: SamFlags = declare(
        0, "Leave out reads with any of these flags: a number, 0x704, or names, e.g."
        " SECONDARY,QCFAIL,DUP, as samtools view -F.", default="none",
    )  # fmt: skip
    include_flags: SamFlags = declare(
        0, "Leave out reads without all of these flags, as samtools view -f.", default="none"
    )
    count: Literal["reads", "fragments"] = declare(
        "reads", "fragments: of a proper pair count the mate on the left alone, and no secondary"
        " or supplementary reads.",
    )  # fmt: skip

    def check(self) -> None:
        super().check()
        if self.regions is not None and self.chromosomes:
            raise UsageError(f"give {option('regions')} or {option('chromosomes')}, not both")
        if self.regions is not None and self.window != WINDOW:
            raise UsageError(f"give {option('regions')} or {option('window')}, not both")
        widths = [name for name in ("get_width", "stranded_start") if getattr(self, name)]
        widths += ["read_width"] if self.read_width > 1 else []
        if self.aligned_width and widths:
            raise UsageError(f"give {option('aligned_width')} or {option(widths[0])}, not both")

    @property
    def counting(self) -> Counting:
        """Rules for which reads count, and which bases each of them covers."""
        return Counting(**{each.name: getattr(self, each.name) for each in fields(Counting)})

    def parameters(self) -> dict[str, Any]:
        """Return the options by their names."""
        return {each.name: getattr(self, each.name) for each in fields(CountOptions)}


@dataclass(frozen=True, kw_only=True)
class CountOutput(Options, group="Output"):
    """File of the table, on the command line."""

    output: TextPath | None = declare(
        None, "File for the table; -: standard output.", "OUT", short="o", default="standard output"
    )

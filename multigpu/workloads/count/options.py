"""Options of a count, as one frozen object."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from multigpu.errors import UsageError, option
from multigpu.formats.alignments.regions import LONGEST
from multigpu.kernels.counting.types import Counting
from multigpu.run.declarations import Options, declare
from multigpu.run.values import Bases, FilePath, NameList, TextPath, choice

WINDOW = 25_000  # bases
CompatR = Annotated[bool, choice({"none": False, "r": True}, in_python=True)]
COMPAT_R = "r: repeat the errors of R, for comparisons with it."


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
        None, "BED file with regions to count in, instead of windows.", "BED", r="GR"
    )
    sample_names: NameList = declare(
        (), "Names of the samples, one a file; @RG: the names (SM) in the files' read groups.",
        default="the files' names without suffix", r="sampleNames",
    )  # fmt: skip
    rename: Literal["none", "auto"] = declare(
        "none", "auto: treat chromosome names that differ by `chr` as the same."
    )
    compat_r: CompatR = declare(False, COMPAT_R, flag="compat", also=("compat",), default="none")
    index: bool = declare(
        True, "Use indexes and make missing ones, or read every file from start to end."
    )
    cache: FilePath | None = declare(
        None, "Folder that keeps the counts of each sample for later runs.", "DIR",
        flag="counts-cache", also=("counts_cache",),
    )  # fmt: skip
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

    def check(self) -> None:
        super().check()
        if self.regions is not None and self.chromosomes:
            raise UsageError(f"give {option('regions')} or {option('chromosomes')}, not both")
        if self.regions is not None and self.window != WINDOW:
            raise UsageError(f"give {option('regions')} or {option('window')}, not both")

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

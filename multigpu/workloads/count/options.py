"""Options of a count, as one frozen object."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from multigpu.errors import UsageError, option
from multigpu.formats.alignments.regions import LONGEST
from multigpu.kernels.counting.types import Counting
from multigpu.run.declarations import Option, Options
from multigpu.run.values import Bases, Choice, FilePath, NameList, TextPath

WINDOW = 25_000  # bases
CompatR = Annotated[
    bool,
    Choice({"none": False, "r": True}, in_python=True),
    Option("r: repeat the errors of R, for comparisons with it.", flag="compat", also=("compat",)),
]


@dataclass(frozen=True, kw_only=True)
class CountOptions(Options, group="Counting"):
    """Regions and reads of a count."""

    window: Annotated[
        Bases,
        Option(
            "Width of the windows to count in, in bases, or as 25kb.",
            "BASES",
            at_least=1,
            at_most=LONGEST - 1,
            r="WL",
        ),
    ] = WINDOW
    chromosomes: Annotated[
        NameList,
        Option("References to count in, in this order.", default="all", r="refSeqNames"),
    ] = ()
    regions: Annotated[
        FilePath | None,
        Option("BED file with regions to count in, instead of windows.", "BED", r="GR"),
    ] = None
    sample_names: Annotated[
        NameList,
        Option(
            "Names of the samples, one a file; @RG: the names (SM) in the files' read groups.",
            default="the files' names without suffix",
            r="sampleNames",
        ),
    ] = ()
    rename: Annotated[
        Literal["none", "auto"],
        Option("auto: treat chromosome names that differ by `chr` as the same."),
    ] = "none"
    compat_r: CompatR = False
    index: Annotated[
        bool,
        Option("Use indexes and make missing ones, or read every file from start to end."),
    ] = True
    cache: Annotated[
        FilePath | None,
        Option(
            "Folder that keeps the counts of each sample for later runs.",
            "DIR",
            flag="counts-cache",
            also=("counts_cache",),
        ),
    ] = None
    min_mapq: Annotated[
        int,
        Option(
            "Lowest mapping quality of a read that counts, 0 to 255.",
            "Q",
            at_least=0,
            at_most=255,
            r="min.mapq",
        ),
    ] = 1
    remove_duplicates: Annotated[
        bool,
        Option("Count only the first of the reads with one position and strand.", r="remove.dup"),
    ] = False
    read_width: Annotated[
        Bases,
        Option(
            "Bases that a read covers, from its position on.",
            "BASES",
            at_least=1,
            at_most=LONGEST - 1,
            r="read.width",
        ),
    ] = 1
    get_width: Annotated[
        bool,
        Option(
            f"Let a read cover its own length instead of {option('read_width')}.", r="get.width"
        ),
    ] = False
    stranded_start: Annotated[
        bool,
        Option("Let a reverse read cover the last bases of its length.", r="stranded.start"),
    ] = False

    def check(self) -> None:
        super().check()
        if self.regions is not None and self.chromosomes:
            raise UsageError(f"give {option('regions')} or {option('chromosomes')}, not both")
        if self.regions is not None and self.window != WINDOW:
            raise UsageError(f"give {option('regions')} or {option('window')}, not both")

    @property
    def counting(self) -> Counting:
        """Which reads count, and which bases each of them covers."""
        return Counting(**{each.name: getattr(self, each.name) for each in fields(Counting)})

    def parameters(self) -> dict[str, Any]:
        """Return the options by their names."""
        return {each.name: getattr(self, each.name) for each in fields(CountOptions)}


@dataclass(frozen=True, kw_only=True)
class CountOutput(Options, group="Output"):
    """File of the table, on the command line."""

    output: Annotated[
        TextPath | None,
        Option(
            "File for the table; -: standard output.",
            "OUT",
            short="o",
            default="standard output",
        ),
    ] = None

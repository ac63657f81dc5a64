"""Options of a count, as one frozen object."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, Self

from multigpu.errors import UsageError
from multigpu.formats.alignments.regions import LONGEST
from multigpu.kernels.counting.types import Counting
from multigpu.run.values import abbreviate, check_choice, convert_fields, path_of, whole

WINDOW = 25_000  # bases
HIGHEST_MAPQ = 255


@dataclass(frozen=True, kw_only=True)
class CountOptions:
    """Regions and reads of a count; names of R in brackets.

    window        width of a window in bases [WL]; not used with `regions`
    chromosomes   references to count in, in this order [refSeqNames]; none: all, as in the file
    regions       BED file with regions to use instead of windows [GR]
    sample_names  one name a file, instead of the files' names [sampleNames]; `@RG`: the names in
                  their read groups
    counting      which reads count, and which bases each of them covers
    rename        "auto": names of chromosomes that differ by `chr` are the same
    compat_r      windows as R makes them: see `multigpu.formats.alignments.regions.windows`
    index         whether indexes are used, and made where they are missing
    cache         folder that keeps the counts of each sample
    """

    window: int = WINDOW
    chromosomes: tuple[str, ...] = ()
    regions: str | None = None
    sample_names: tuple[str, ...] = ()
    counting: Counting = field(default_factory=Counting)
    rename: Literal["none", "auto"] = "none"
    compat_r: bool = False
    index: bool = True
    cache: str | None = None

    @classmethod
    def of(cls, **parameters: Any) -> Self:
        """Return the options for parameters of `multigpu.count`: `Counting` has some of them."""
        names = {each.name for each in fields(Counting)}
        reads = {name: parameters.pop(name) for name in names & parameters.keys()}
        return cls(**parameters, counting=Counting(**reads))

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of `multigpu.count` that give these options."""
        names = [each.name for each in fields(self) if each.name != "counting"]
        return {name: getattr(self, name) for name in names} | asdict(self.counting)

    def __post_init__(self) -> None:
        """Raise UsageError for impossible options."""
        convert_fields(self, _name_list, "chromosomes", "sample_names")
        convert_fields(self, path_of, "regions", "cache")
        check_choice("rename", self.rename, ("none", "auto"))
        object.__setattr__(self, "window", _number_in("window", self.window, 1, LONGEST - 1))
        reads = replace(
            self.counting,
            min_mapq=_number_in("min_mapq", self.counting.min_mapq, 0, HIGHEST_MAPQ),
            read_width=_number_in("read_width", self.counting.read_width, 1, LONGEST - 1),
        )
        object.__setattr__(self, "counting", reads)
        if self.regions is not None and self.chromosomes:
            raise UsageError("give --regions or --chromosomes, not both")
        if self.regions is not None and self.window != WINDOW:
            raise UsageError("give --regions or --window, not both")


def _name_list(_: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names in a sequence, or in a text with commas between them."""
    return tuple(value.split(",")) if isinstance(value, str) else tuple(value)


def _number_in(name: str, value: Any, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`. Raises UsageError for anything else."""
    number = whole(name, value)
    if not least <= number <= most:
        raise UsageError(f"{name} is {abbreviate(number)}; it must be {least} to {most:,}")
    return number

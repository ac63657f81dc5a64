"""Quality of the samples of a run: reads, noise, calls and sex, and which samples are outliers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.cnv.records import Columnar, Floats, Indices, Rows
from multigpu.workloads.cnv.results.copy_numbers import direction

if TYPE_CHECKING:
    from multigpu.workloads.cnv.results.result import CnvResult

# A sample is an outlier against the median sample, of three at least.
FEWEST_SAMPLES = 3
FEW_READS = 0.25  # of the reads of the median sample
NOISY = 1.5  # times the noise of the median sample
MANY_CALLS, TIMES_CALLS = 10, 5  # more calls than these, and times the calls of the median sample
UNLIKE = 0.1  # below the median correlation, and more than four standard deviations (by the MAD)
MAD = 1.4826  # standard deviation of normal values by their median absolute deviation

DIGITS = 4  # of noise, correlation and coverage
MISSING = "NA"
FINE = "no"  # in the column of outliers


@dataclass(frozen=True, eq=False, kw_only=True)
class QcTable(Columnar):
    """Facts about the samples of a run, by which one can trust them; NaN where not known.

    sample         their names
    reads          float64[samples]  on all chromosomes
    noise          float64[samples]  median absolute difference of log2 ratios of neighbouring
                                     regions
    correlation    float64[samples]  mean of those with its reference samples
    references     int32[samples]    how many samples it is compared with
    losses, gains  int64[samples]    CNVs with fewer and with more copies than usual
    bases          int64[samples]    in CNVs
    sex            "male", "female", or "" where it is not known
    x, y           float64[samples]  coverage of X and Y relative to the autosomes
    outlier        words why it is one, with commas between them; "" for none
    """

    sample: NDArray[Any]
    reads: Floats
    noise: Floats
    correlation: Floats
    references: Indices
    losses: Rows
    gains: Rows
    bases: Rows
    sex: NDArray[Any]
    x: Floats
    y: Floats
    outlier: NDArray[Any]

    @classmethod
    def of(cls, result: "CnvResult") -> "QcTable":
        """Return the facts about the cases of a result."""
        count, cnvs = len(result.samples), result.called
        sign = direction(cnvs.copy_number, result.options)
        length = np.bincount(cnvs.sample, cnvs.end - cnvs.start, minlength=count)
        x, y = np.full((2, count), np.nan)
        if result.sex_coverage:
            x, y = np.array(result.sex_coverage.shares()[:count]).T
        known = np.full((3, count), np.nan)
        references = np.zeros(count, np.int32)
        if result.facts:
            facts = result.facts.take(slice(count))
            known = np.array([facts.reads, facts.noise, facts.correlation])
            references = facts.references
        others = count + len(result.controls) - 1
        losses, gains = (
            np.bincount(cnvs.sample[sign == each], minlength=count) for each in (-1, 1)
        )
        return cls(
            sample=np.array(result.samples, object),
            reads=known[0],
            noise=known[1],
            correlation=known[2],
            references=np.where(references, references, others).astype(np.int32),
            losses=losses,
            gains=gains,
            bases=length.astype(np.int64),
            sex=np.array([*result.sex[:count], *[""] * (count - len(result.sex))], object),
            x=x,
            y=y,
            outlier=_reasons(known[0], known[1], known[2], losses + gains),
        )

    def texts(self) -> dict[str, list[str]]:
        """Return the columns as they are written, by their names."""
        columns = {name: getattr(self, name).tolist() for name in self.__dataclass_fields__}
        columns["sex"] = [sex or MISSING for sex in columns["sex"]]
        columns["outlier"] = [why or FINE for why in columns["outlier"]]
        return {name: list(map(_text, values)) for name, values in columns.items()}

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each sample as JSON has it: None where something is not known."""
        names = tuple(self.__dataclass_fields__)
        rows = zip(*(getattr(self, name).tolist() for name in names), strict=True)
        return [{name: _json(x) for name, x in zip(names, row, strict=True)} for row in rows]


def _reasons(reads: Floats, noise: Floats, correlation: Floats, calls: Rows) -> NDArray[Any]:
    """Return why each sample is an outlier, as words with commas between them."""
    reasons: list[list[str]] = [[] for _ in calls]
    if len(calls) >= FEWEST_SAMPLES:
        spread = 4 * MAD * _median(np.abs(correlation - _median(correlation)))
        found = {
            "few reads": reads < FEW_READS * _median(reads),
            "noisy": noise > NOISY * _median(noise),
            "low correlation": correlation < _median(correlation) - max(UNLIKE, spread),
            "many calls": calls > max(MANY_CALLS, TIMES_CALLS * float(np.median(calls))),
        }
        for word, is_so in found.items():
            for sample in np.flatnonzero(is_so).tolist():
                reasons[sample].append(word)
    return np.array([", ".join(words) for words in reasons], object)


def _median(values: Floats) -> float:
    """Return the median of the values that are known, NaN without any."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else np.nan


def _text(value: Any) -> str:
    if isinstance(value, float):
        whole = value.is_integer() or abs(value) >= 1e6
        return MISSING if np.isnan(value) else f"{value:.{0 if whole else DIGITS}f}"
    return str(value)


def _json(value: Any) -> Any:
    if isinstance(value, float):
        return None if np.isnan(value) else round(value, DIGITS)
    return value

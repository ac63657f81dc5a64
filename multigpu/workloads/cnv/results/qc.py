"""Quality of the samples of a run: reads, noise, calls and sex, and which samples are outliers."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.cnv.records import Columnar, Floats, Indices, Rows, SampleFacts
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
        unknown = np.full(count, np.nan)
        facts = result.facts or SampleFacts.uncompared(unknown, unknown)
        facts = facts.take(slice(count))
        others = count + len(result.controls) - 1
        sign = direction(cnvs.copy_number, result.options)
        losses, gains = (np.bincount(cnvs.sample[sign == s], minlength=count) for s in (-1, 1))
        shares = result.sex_coverage.shares()[:count] if result.sex_coverage else []
        x, y = np.array(shares).T if shares else (unknown, unknown)
        bases = np.bincount(cnvs.sample, cnvs.end - cnvs.start, minlength=count)
        return cls(
            sample=np.array(result.samples, object),
            reads=facts.reads,
            noise=facts.noise,
            correlation=facts.correlation,
            references=np.where(facts.references, facts.references, others).astype(np.int32),
            losses=losses,
            gains=gains,
            bases=bases.astype(np.int64),
            sex=np.array(result.sex[:count] or [""] * count, object),
            x=x,
            y=y,
            outlier=_reasons(facts, losses + gains),
        )

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each sample: None where something is not known."""
        columns = {each.name: getattr(self, each.name).tolist() for each in fields(self)}
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, map(known_value, row), strict=True)) for row in rows]


def _reasons(facts: SampleFacts, calls: Rows) -> NDArray[Any]:
    """Return why each sample is an outlier, as words with commas between them."""
    correlation = facts.correlation
    spread = 4 * MAD * _median(np.abs(correlation - _median(correlation)))
    found = {
        "few reads": facts.reads < FEW_READS * _median(facts.reads),
        "noisy": facts.noise > NOISY * _median(facts.noise),
        "low correlation": correlation < _median(correlation) - max(UNLIKE, spread),
        "many calls": calls > max(MANY_CALLS, TIMES_CALLS * float(np.median(calls))),
    }
    if len(calls) < FEWEST_SAMPLES:
        found = {}
    reasons = [[word for word, is_so in found.items() if is_so[k]] for k in range(len(calls))]
    return np.array([", ".join(words) for words in reasons], object)


def _median(values: Floats) -> float:
    """Return the median of the values that are known, NaN without any."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else np.nan


def known_value(value: Any) -> Any:
    """Return a value rounded; None for NaN and an empty text."""
    if isinstance(value, float):
        return None if np.isnan(value) else round(value, DIGITS)
    return None if value == "" else value

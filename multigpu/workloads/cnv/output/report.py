"""Contents of the report on copy numbers: what `multigpu.report` makes a page of."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from multigpu.citation import CN_MOPS
from multigpu.report.page import Card, Column, Page, Provenance, Section, Table
from multigpu.run.command import number_of
from multigpu.run.declarations import declared
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.output.figures import (
    COLOURS,
    FARTHEST,
    SamplePlots,
    cohort_figure,
    genes,
    labels,
    places,
    value_name,
)
from multigpu.workloads.cnv.records import Floats
from multigpu.workloads.cnv.results.copy_numbers import direction
from multigpu.workloads.cnv.results.result import CnvResult
from multigpu.workloads.cnv.samples.inputs import COUNTING
from multigpu.workloads.count.options import CountOptions

TABLE_ROWS = 2000  # of CNVs
LISTED_GENES = 50  # of a CNV
HEAT = (
    "Means of segments; where several lie in one place the strongest. {} Drag to zoom, double click"
    " to return."
)
PLOTS = (
    "Points are the {} of regions, or means of neighbours, and at most ±{:g} is shown; lines are"
    " segments, with breaks at gaps. {} Point at a mark to read about the CNV; drag to zoom, double"
    " click to return."
)
ROWS = "The {:,} of {:,} CNVs with {}; cnvs.tsv has all."
COVERAGE = "The sex is inferred by the coverage of X and Y."


def render(
    result: CnvResult,
    *,
    inputs: Sequence[str] = (),
    counting: Mapping[str, Any] = MappingProxyType({}),
    provenance: Provenance | None = None,
) -> bytes:
    """Return the page; its bytes depend on the arguments alone.

    inputs      files of the counts, in words
    counting    parameters of counting, by name
    provenance  command and time, for the header
    """
    page = Page(
        title="Copy-number variants",
        method="Hidden Markov model of copy numbers" if result.options.is_hmm else "cn.MOPS",
        inputs=inputs,
        cards=[*_cards(result)],
        sections=[*_sections(result)],
        settings=[*_changed(result.options, counting)],
        provenance=provenance,
        references=[] if result.options.is_hmm else [CN_MOPS],
    )
    return page.html()


def _cards(result: CnvResult) -> Iterator[Card]:
    numbers = {
        "Samples": len(result.samples), "Controls": len(result.controls),
        "CNVs": len(result.called), "CNV regions": len(result.called_regions),
        "Segments": len(result.segments), "Regions": len(result.regions),
        "Chromosomes": len(result.regions.blocks),
    }  # fmt: skip
    for name, number in numbers.items():
        if number or name != "Controls":
            yield Card(name, f"{number:,}")
    options = result.options
    yield Card("Model", "hidden Markov model" if options.is_hmm else options.model)


def _changed(options: CnvOptions, counting: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the parameters of the model and of counting that are not the default, as one entry."""
    counted = {name: value for name, value in counting.items() if name in COUNTING}
    words = [
        " ".join(each.words(values[each.name])).removeprefix("--")
        for values, usual in (
            (vars(options), CnvOptions.of(options.model)),
            (counted, CountOptions()),
        )
        for each in declared(type(usual))
        if values.get(each.name, default := getattr(usual, each.name)) != default
    ]
    if words:
        yield "Other than the model's defaults", "; ".join(words)


def _sections(result: CnvResult) -> Iterator[Section]:
    yield from _findings(result)
    plots = SamplePlots(result)
    signed = value_name(result.options)
    if plots.shown:
        text = PLOTS.format(signed, FARTHEST, COLOURS)
        others = [("Without a plot", ", ".join(result.samples[k] for k in plots.others))]
        drawn = [*plots.figures()]
        yield Section(title="Samples along the genome", text=text, figures=drawn, facts=others)
    title = f"{signed[0].upper()}{signed[1:]} over the genome"
    yield Section(title=title, text=HEAT.format(COLOURS), figures=[cohort_figure(result)])
    yield Section(title="Quality of samples", text=_outliers(result), table=_samples(result))


def _findings(result: CnvResult) -> Iterator[Section]:
    """Yield the notes and the CNVs; where there are none, what would be one, and why."""
    if not len(result.called):
        text = _criteria(result.options)
        yield Section(title="No CNVs were found", text=text, items=result.notes)
        return
    if result.notes:
        yield Section(title="Notes", items=result.notes)
    yield _calls(result)


def _outliers(result: CnvResult) -> str:
    """Return which samples are outliers and why, and where their sexes come from."""
    pairs = zip(result.samples, result.qc.outlier.tolist(), strict=True)
    found = [f"{name} ({why})" for name, why in pairs if why]
    text = f"Outliers: {'; '.join(found)}." if found else "No sample is an outlier."
    return f"{text} {COVERAGE}" if result.sex_coverage else text


def _criteria(options: CnvOptions) -> str:
    """Return in words what is called."""
    least = [number_of(options.min_width, "region")]
    if options.min_length:
        least.append(f"{options.min_length:,} bases")
    if options.is_hmm:
        least += [f"a quality of {options.min_quality:g}"] if options.min_quality else []
        return f"A CNV is what has other copies than usual, with at least {' and '.join(least)}."
    value = "median" if options.use_median else "mean"
    return (
        f"A CNV is a segment of at least {' and '.join(least)}, with a {value} of the signed I/NI"
        f" of {options.upper:g} or more (gain) or {options.lower:g} or less (loss)."
    )


def _number(name: str, unit: str = "") -> Column:
    return Column(name, unit, is_number=True)


def _calls(result: CnvResult) -> Section:
    """Return the table of CNVs; of very many those that are surest, or largest."""
    every, total = result.called, len(result.called)
    has_quality = not np.isnan(every.quality).all()
    key, most = (every.quality, "the best quality") if has_quality else (every.rows, "most regions")
    rows = np.sort(np.argsort(-key, kind="stable")[:TABLE_ROWS])
    cnvs, signed = every.take(rows), value_name(result.options)
    frequency, compared = result.frequency[rows], (result.usual[rows] > 0).sum(axis=1)
    kind = direction(cnvs.copy_number, result.options) + 1
    columns: dict[Column, Sequence[object]] = {
        Column("place", "from 1, inclusive"): places(cnvs, result),
        Column("sample"): [result.samples[k] for k in cnvs.sample.tolist()],
        Column("change"): [("loss", "", "gain")[k] for k in kind.tolist()],
        Column("copies"): labels(cnvs, result),
        _number("size", "bases"): (cnvs.end - cnvs.start).tolist(),
        _number("regions"): cnvs.rows.tolist(),
        _number("mean", signed): _words(cnvs.mean),
        _number("quality", "Phred"): _words(cnvs.quality, 0),
        _number("carriers"): _words(frequency * compared, 0),
        _number("frequency"): _words(frequency, 3),
        Column("filter"): [
            ", ".join(result.failed_filters(row)) or "PASS" for row in rows[:, None]
        ],
        Column("genes"): genes(cnvs, result, LISTED_GENES),
    }
    text = ROWS.format(len(cnvs), total, most) if total > len(cnvs) else ""
    return Section(title="CNVs", text=text, table=_table("cnvs", columns))


def _samples(result: CnvResult) -> Table:
    qc, ploidy = result.qc, result.ploidy or ()
    columns: dict[Column, Sequence[object]] = {
        Column("sample"): result.samples,
        Column("outlier"): qc.outlier.tolist(),
        Column("sex"): [sex or "unknown" for sex in qc.sex] if any(qc.sex) else (),
        _number("X", "coverage, autosomes = 1"): _words(qc.x),
        _number("Y", "coverage, autosomes = 1"): _words(qc.y),
        _number("ploidy", "usual copies"): ploidy[: len(result.samples)],
        _number("reads"): _words(qc.reads, 0),
        _number("noise", "of log2 ratios; lower is better"): _words(qc.noise, 3),
        _number("correlation", "higher is better"): _words(qc.correlation, 3),
        _number("references", "samples"): qc.references.tolist(),
        _number("losses", "CNVs"): qc.losses.tolist(),
        _number("gains", "CNVs"): qc.gains.tolist(),
        _number("in CNVs", "bases"): qc.bases.tolist(),
    }
    return _table("samples", columns)


def _table(name: str, columns: Mapping[Column, Sequence[object]]) -> Table:
    """Return a table without the columns of which nothing is known."""
    known = {column: values for column, values in columns.items() if any(v != "" for v in values)}
    return Table(name, [*known], list(zip(*known.values(), strict=True)))


def _words(values: Floats, digits: int = 2) -> list[str]:
    """Return numbers as texts, which are empty for NaN."""
    return ["" if np.isnan(value) else f"{value:.{digits}f}" for value in values.tolist()]

"""Contents of the report on a scan: what `multigpu.report` makes a page of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from multigpu.report.figures import Figure, Json, axis, literal, name_axis, rounded
from multigpu.report.page import Card, Column, Page, Provenance, Section, Table
from multigpu.run.declarations import flag
from multigpu.workloads.scan.details import KINDS, LONG, LONG_PLACES, MOST_LONG, PLACES
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.output.columns import decoded
from multigpu.workloads.scan.output.multiqc import sample_names
from multigpu.workloads.scan.tally import Tallies

# What a page shows, at most: it stays below 7 MB, of which plotly is 5.
HEAT_FILES, HEAT_SIGNATURES = 100, 100  # of a heat map; files beyond are in others
MOST_HEAT_MAPS = 20
TABLE_FILES, TABLE_SIGNATURES, TABLE_PAIRS = 2000, 2000, 2000
PLACED_SIGNATURES = 50
BRAND = "var(--brand)"
COLOURS = [[0, "var(--zero)"], [1, BRAND]]
ERRORS = (("mismatch", BRAND), ("missing base", "var(--b)"), ("additional base", "var(--c)"))
HEAT = (
    "Share of the reads of a file that have a signature. {few} Drag to zoom, double click to"
    " return."
)
PLACED = (
    "Where in their samples the matches of a signature lie, from the first base (0 %) to the last;"
    " each line adds up to 100 %. {few}"
)


@dataclass(frozen=True)
class ScanReport:
    """A page for a browser."""

    path: str
    options: ScanOptions
    is_detailed: ClassVar[bool] = True

    def write(self, file: BinaryIO, tallies: Tallies) -> None:
        file.write(page_of(tallies, self.options, Provenance.of_this_run()).html())


def page_of(tallies: Tallies, options: ScanOptions, provenance: Provenance | None = None) -> Page:
    """Return the page; it depends on the arguments alone."""
    contents = _Contents(tallies)
    return Page(
        title="Signatures in samples",
        method="Exact search" if not options.has_errors else "Search with errors",
        inputs=tallies.names,
        cards=[*contents.cards()],
        sections=[*contents.sections()],
        settings=[*_settings(options)],
        provenance=provenance,
    )


def _settings(options: ScanOptions) -> Iterator[tuple[str, str]]:
    """Yield the options that are not the default, as one entry."""
    values = ((each, getattr(options, each.name)) for each in fields(options))
    changed = [f"{flag(each.name)} {value}" for each, value in values if value != each.default]
    if changed:
        yield "Other than the defaults", ", ".join(changed)


class _Contents:
    """Cards, tables and figures of the numbers of a scan.

    top         the signatures with most reads, in their order; `signatures` are their names
    reads, matches, scores, shares  [files, top]; shares of the reads of a file, in percent
    every_file  matches, signatures found and mean score of each file, of all signatures
    is_found    bool[all signatures]
    """

    def __init__(self, tallies: Tallies) -> None:
        self.tallies, self.top = tallies, tallies.top(TABLE_SIGNATURES)
        names = tallies.signatures.names
        self.signatures = decoded([names[i] for i in self.top.tolist()], "utf-8")
        self.files = sample_names(tallies.names)
        self.records, self.matched = np.array(tallies.records), np.array(tallies.matched)
        shape = len(self.files), len(self.top)
        self.reads, self.matches = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.scores, self.is_found = np.zeros(shape), np.zeros(len(names), np.bool_)
        self.every_file: list[tuple[int, int, float]] = []
        for i, each in enumerate(tallies):
            self.reads[i], self.matches[i] = each.reads[self.top], each.matches[self.top]
            self.scores[i] = each.mean_score[self.top]
            there = each.matches > 0
            self.is_found |= there
            # Scores are missing in all of a file or in none of it.
            total = int(each.matches.sum())
            mean = float(each.mean_score[there] @ each.matches[there]) / max(total, 1)
            self.every_file.append((total, int(np.count_nonzero(there)), mean if total else np.nan))
        self.shares: NDArray[np.float64] = 100 * self.reads / np.maximum(self.records, 1)[:, None]

    def cards(self) -> Iterator[Card]:
        yield Card("Files", f"{len(self.files):,}")
        yield Card("Reads", f"{self.records.sum():,}")
        share = _percent(self.matched.sum(), self.records.sum())
        yield Card("Reads with a match", f"{self.matched.sum():,}", f"{share} % of all")
        found = f"{np.count_nonzero(self.is_found):,} of them found"
        yield Card("Signatures", f"{len(self.is_found):,}", found)
        yield Card("Matches", f"{sum(total for total, *_ in self.every_file):,}")

    def sections(self) -> Iterator[Section]:
        text = HEAT.format(few=self._few(HEAT_SIGNATURES))
        yield Section(title="Files and signatures", text=text, figures=[*self._heat_maps()])
        details = self.tallies.details
        if len(details.places):
            text = PLACED.format(few=self._few(PLACED_SIGNATURES))
            yield Section(title="Places in samples", text=text, figures=[self._places()])
        if details.long:
            what = f"Samples of at least {LONG:,} bases with matches"
            more = f"; the first {MOST_LONG}" if len(details.long) == MOST_LONG else ""
            figures = [_long(*each) for each in details.long]
            yield Section(title="Places in long samples", text=f"{what}{more}.", figures=figures)
        both = bool(len(details.errors) and len(details.scores))
        if len(details.errors):
            yield Section(title="Errors by position", figures=[self._errors()], is_half=both)
        if len(details.scores):
            yield Section(title="Scores", figures=[self._scores()], is_half=both)
        yield Section(title="Files", table=self._file_table())
        few = self._few(TABLE_SIGNATURES)
        yield Section(title="Signatures", text=few, table=self._signature_table())
        pairs = self._pair_table()
        text = f"The {TABLE_PAIRS:,} with most reads." if len(pairs.rows) == TABLE_PAIRS else ""
        yield Section(title="Pairs of file and signature", text=text, table=pairs)

    def _few(self, most: int) -> str:
        return f"The {most:,} signatures with most reads." if len(self.is_found) > most else ""

    # ---- tables -------------------------------------------------------------------------------

    def _file_table(self) -> Table:
        numbers = zip(self.files, self.records, self.matched, self.every_file, strict=True)
        rows = [
            (name, records, matched, _percent(matched, records), total, found, _score(mean))
            for name, records, matched, (total, found, mean) in numbers
        ]
        columns = (
            Column("file"), _number("reads"), _number("with a match"), _number("share", "%"),
            _number("matches"), _number("signatures", "found"), _number("mean score", "Phred"),
        )  # fmt: skip
        return Table("files", columns, rows[:TABLE_FILES])

    def _signature_table(self) -> Table:
        lengths, total = self.tallies.signatures.letters.lengths[self.top], self.records.sum()
        reads, files = self.reads.sum(axis=0), np.count_nonzero(self.matches, axis=0)
        numbers = zip(
            self.signatures, lengths, reads, self.matches.sum(axis=0), files, strict=True
        )  # fmt: skip
        rows = [
            (name, length, some, _percent(some, total), matches, with_it)
            for name, length, some, matches, with_it in numbers
        ]
        columns = (
            Column("signature"), _number("length", "bases"), _number("reads", "with a match"),
            _number("share", "%"), _number("matches"), _number("files", "with it"),
        )  # fmt: skip
        return Table("signatures", columns, rows)

    def _pair_table(self) -> Table:
        reads = self.reads.ravel()
        most = np.sort(np.argsort(-reads, kind="stable")[:TABLE_PAIRS])
        rows = [
            (
                self.files[f], self.signatures[s], self.reads[f, s],
                _percent(self.reads[f, s], self.records[f]), self.matches[f, s],
                _score(self.scores[f, s]),
            )
            for f, s in zip(*divmod(most[reads[most] > 0], len(self.top)), strict=True)
        ]  # fmt: skip
        columns = (
            Column("file"), Column("signature"), _number("reads", "with a match"),
            _number("share", "%"), _number("matches"), _number("mean score", "Phred"),
        )  # fmt: skip
        return Table("pairs", columns, rows)

    # ---- figures ------------------------------------------------------------------------------

    def _best(self, most: int) -> NDArray[np.intp]:
        """Return which of `top` have most reads, at most so many."""
        return np.searchsorted(self.top, self.tallies.top(most))

    def _heat_maps(self) -> Iterator[Figure]:
        """Yield the shares of files x signatures, some files at a time."""
        best = self._best(HEAT_SIGNATURES)
        names = [self.signatures[i] for i in best.tolist()]
        highest = float(self.shares[:, best].max(initial=0))
        for at in range(0, min(len(self.files), HEAT_FILES * MOST_HEAT_MAPS), HEAT_FILES):
            files = self.files[at : at + HEAT_FILES]
            title = f"{files[0]} to {files[-1]}" if len(self.files) > HEAT_FILES else ""
            trace = _heat(self.shares[at : at + HEAT_FILES, best], highest, "% of reads")
            trace["x"] = list(map(literal, names))
            trace["hovertemplate"] = "%{y}<br>%{x}<br>%{z} % of reads<extra></extra>"
            xaxis = name_axis("signature", names, showgrid=False)
            yield _figure_of_heat(trace, xaxis, "file", files, title)

    def _places(self) -> Figure:
        best = self._best(PLACED_SIGNATURES)
        signatures, sums = self.top[best], self.tallies.details.places.total()
        shown = np.isin(sums.keys // PLACES, signatures)
        keys, counts = sums.keys[shown], np.zeros((len(best), PLACES))
        which = np.searchsorted(signatures, keys // PLACES)
        counts[which, keys % PLACES] = sums.numbers["count"][shown]
        shares = 100 * counts / np.maximum(counts.sum(axis=1), 1)[:, None]
        trace = _heat(shares, float(shares.max(initial=0)), "% of matches")
        trace["x"] = rounded(100 * (np.arange(PLACES) + 0.5) / PLACES)
        trace["hovertemplate"] = "%{y}<br>at %{x} %<br>%{z} % of its matches<extra></extra>"
        names = [self.signatures[i] for i in best.tolist()]
        return _figure_of_heat(trace, axis("place in the sample, %"), "signature", names)

    def _errors(self) -> Figure:
        sums = self.tallies.details.errors.total()
        positions = int(sums.keys.max()) // KINDS + 1
        counts = sums.dense("matches", KINDS * positions).reshape(positions, KINDS)
        total = max(sum(total for total, *_ in self.every_file), 1)
        bars = [
            {
                "type": "bar", "name": name, "marker": {"color": colour},
                "x": list(range(1, positions + 1)), "y": rounded(100 * counts[:, kind] / total),
                "hovertemplate": "base %{x}: %{y} % of matches<extra>" + name + "</extra>",
            }
            for kind, (name, colour) in enumerate(ERRORS) if counts[:, kind].any()
        ]  # fmt: skip
        layout = {
            "barmode": "stack", "xaxis": axis("base of the signature, from 1"),
            "yaxis": axis("% of all matches", rangemode="tozero"),
        }  # fmt: skip
        return Figure(data=bars, layout=layout)

    def _scores(self) -> Figure:
        sums = self.tallies.details.scores.total()
        bars = {
            "type": "bar", "x": sums.keys.tolist(), "y": sums.numbers["count"].tolist(),
            "marker": {"color": BRAND},
            "hovertemplate": "score %{x}: %{y} matches<extra></extra>",
        }  # fmt: skip
        layout = {
            "xaxis": axis("mean Phred score of a match (higher is better)"),
            "yaxis": axis("matches", rangemode="tozero"),
            "bargap": 0.02,
        }
        return Figure(data=[bars], layout=layout)


def _long(name: bytes, length: int, counts: NDArray[np.int64]) -> Figure:
    """Return the matches along one long sample."""
    width = length / LONG_PLACES / 1e6
    bars = {
        "type": "bar", "y": counts.tolist(), "marker": {"color": BRAND}, "width": width,
        "x": rounded((np.arange(LONG_PLACES) + 0.5) * width, 6),
        "hovertemplate": "at %{x} Mb: %{y} matches<extra></extra>",
    }  # fmt: skip
    (text,) = decoded([name], "utf-8")
    layout = {
        "xaxis": axis(f"position on {literal(text)}, Mb"),
        "yaxis": axis("matches", rangemode="tozero"),
        "bargap": 0,
    }
    return Figure(data=[bars], layout=layout, title=f"{text}: {counts.sum():,} matches")


# ---- parts of tables and figures ----------------------------------------------------------------


def _number(name: str, unit: str = "") -> Column:
    return Column(name, unit, is_number=True)


def _percent(some: Any, of: Any) -> str:
    return f"{100 * some / max(of, 1):.4g}"


def _score(score: float) -> str:
    return "" if np.isnan(score) else f"{score:.2f}"


def _heat(values: NDArray[np.float64], highest: float, title: str) -> Json:
    return {
        "type": "heatmap", "z": rounded(values, 3), "zmin": 0, "zmax": highest or 1,
        "colorscale": COLOURS,
        "colorbar": {
            "title": {"text": title, "side": "top"}, "thickness": 12, "orientation": "h",
            "y": 1, "yanchor": "bottom", "ypad": 0,
        },
    }  # fmt: skip


def _figure_of_heat(
    trace: Json, xaxis: Json, rows: str, names: Sequence[str], title: str = ""
) -> Figure:
    """Return a heat map. rows: what each row is, by its name."""
    trace["y"] = list(map(literal, names))
    layout = {"xaxis": xaxis, "yaxis": name_axis(rows, names, autorange="reversed")}
    height = int(np.clip(200 + 18 * len(names), 300, 1700))
    return Figure(data=[trace], layout=layout, height=height, title=title)

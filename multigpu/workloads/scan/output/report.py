"""Contents of the report on a scan: what `multigpu.report` makes a page of."""

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from multigpu.report.figures import (
    Figure,
    Json,
    axis,
    bar_figure,
    bars,
    heat_map,
    literal,
    name_axis,
    rounded,
)
from multigpu.report.page import Card, Column, Page, Provenance, Section, Table
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.output.multiqc import sample_names
from multigpu.workloads.scan.output.row_lines import decoded
from multigpu.workloads.scan.tally import (
    KINDS,
    LONG,
    LONG_PLACES,
    PLACES,
    LongSample,
    Sums,
    Tallies,
)

# What a page shows, at most: it stays below 7 MB, of which plotly is 5.
HEAT_FILES, HEAT_SIGNATURES, MOST_HEAT_MAPS = 100, 100, 20  # files beyond are in the next heat map
PLACED_SIGNATURES, TABLE_ROWS, UNKNOWN_BARCODES = 50, 2000, 100
ERRORS = (("mismatch", "brand"), ("missing base", "b"), ("additional base", "c"))
HEAT = "Share of the reads of a file that have a signature. Drag to zoom, double click to return."
PLACED = (
    "Where in their samples the matches of a signature lie, from the first base (0 %) to the last;"
    " each line adds up to 100 %."
)


def write_report(options: ScanOptions, file: BinaryIO, tallies: Tallies) -> None:
    file.write(page_of(tallies, options, Provenance.of_this_run()).html())


def page_of(tallies: Tallies, options: ScanOptions, provenance: Provenance | None = None) -> Page:
    """Return the page; it depends on the arguments alone."""
    contents = _Contents(tallies)
    return Page(
        title="Signatures in samples",
        method="Search with errors" if options.has_errors else "Exact search",
        inputs=tallies.names,
        cards=[*contents.cards()],
        sections=[*contents.sections()],
        settings=[("Other than the defaults", ", ".join(options.unusual))],
        provenance=provenance,
    )


class _Contents:
    """Cards, tables and figures of the numbers of a scan.

    top         the signatures with most reads, in their order; `signatures` are their names
    reads       [files, top], as `matches`; `shares` are those of the reads of a file, in percent
    every_file  matches, signatures found and mean score of each file
    is_found    bool[all signatures]
    """

    def __init__(self, tallies: Tallies) -> None:
        self.tallies, self.top = tallies, tallies.top(TABLE_ROWS)
        names = tallies.signatures.names
        self.signatures = decoded([names[i] for i in self.top.tolist()], "utf-8")
        self.files = sample_names(tallies.names)
        self.records, self.matched = tallies.records, tallies.matched
        self.reads, self.matches = np.zeros((2, len(self.files), len(self.top)), np.int64)
        self.is_found = np.zeros(len(names), np.bool_)
        self.every_file: list[tuple[int, int, str]] = []
        for i, each in enumerate(tallies):
            matches, there = each["matches"], each["matches"] > 0
            self.reads[i], self.matches[i] = each["reads"][self.top], matches[self.top]
            self.is_found |= there
            # Scores are missing in all of a file or in none of it.
            mean = each["mean_score"][there] @ matches[there] / max(matches.sum(), 1)
            score = f"{mean:.2f}" if there.any() and not np.isnan(mean) else ""
            self.every_file.append((int(matches.sum()), int(np.count_nonzero(there)), score))
        self.total = sum(total for total, *_ in self.every_file)
        self.shares: NDArray[np.float64] = 100 * self.reads / np.maximum(self.records, 1)[:, None]

    def cards(self) -> Iterator[Card]:
        matched, records = self.matched.sum(), self.records.sum()
        yield Card("Files", f"{len(self.files):,}")
        yield Card("Reads", f"{records:,}")
        yield Card("Reads with a match", f"{matched:,}", f"{_percent(matched, records)} % of all")
        found = f"{np.count_nonzero(self.is_found):,} of them found"
        yield Card("Signatures", f"{len(self.is_found):,}", found)
        yield Card("Matches", f"{self.total:,}")

    def sections(self) -> Iterator[Section]:
        text = f"{HEAT} {self._few(HEAT_SIGNATURES)}"
        yield Section(title="Files and signatures", text=text, figures=[*self._heat_maps()])
        places, errors, scores, reads = map(
            self.tallies.sums, ("places", "errors", "scores", "barcodes")
        )
        if len(places.keys):
            text = f"{PLACED} {self._few(PLACED_SIGNATURES)}"
            yield Section(title="Places in samples", text=text, figures=[self._places(places)])
        if long := self.tallies.long:
            text = f"The first {len(long)} with matches, of at least {LONG:,} bases."
            figures = [*map(_long_sample, long)]
            yield Section(title="Places in long samples", text=text, figures=figures)
        both = bool(len(errors.keys) and len(scores.keys))
        if len(errors.keys):
            yield Section(title="Errors by position", figures=[self._errors(errors)], is_half=both)
        if len(scores.keys):
            yield Section(title="Scores", figures=[_scores(scores)], is_half=both)
        if len(reads.keys):
            yield self._demultiplexing(*(int(reads.numbers[n][0]) for n in ("reads", "unknown")))
        yield Section(title="Files", table=self._file_table())
        few = self._few(TABLE_ROWS)
        yield Section(title="Signatures", text=few, table=self._signature_table())

    def _few(self, most: int) -> str:
        return f"The {most:,} signatures with most reads." if len(self.is_found) > most else ""

    def _file_table(self) -> Table:
        numbers = zip(self.files, self.records, self.matched, self.every_file, strict=True)
        rows = [
            (name, records, matched, _percent(matched, records), *found)
            for name, records, matched, found in numbers
        ]
        columns = (
            Column("file"), _number("reads"), _number("with a match"), _number("share", "%"),
            _number("matches"), _number("signatures", "found"), _number("mean score", "Phred"),
        )  # fmt: skip
        return Table("files", columns, rows[:TABLE_ROWS])

    def _signature_table(self) -> Table:
        lengths, total = self.tallies.signatures.letters.lengths[self.top], self.records.sum()
        reads, files = self.reads.sum(axis=0), np.count_nonzero(self.matches, axis=0)
        shares, best = [_percent(each, total) for each in reads], self.shares.argmax(axis=0)
        most = [self.files[i] if some else "" for i, some in zip(best, reads, strict=True)]
        columns = {
            Column("signature"): self.signatures, _number("length", "bases"): lengths,
            _number("reads", "with a match"): reads, _number("share", "%"): shares,
            _number("matches"): self.matches.sum(axis=0), _number("files", "with it"): files,
            Column("most in", "by share"): most,
        }  # fmt: skip
        return Table("signatures", [*columns], list(zip(*columns.values(), strict=True)))

    def _best(self, most: int) -> tuple[NDArray[np.intp], list[str]]:
        """Return which of `top` have most reads, at most so many, and their names."""
        best = np.searchsorted(self.top, self.tallies.top(most))
        return best, [self.signatures[i] for i in best.tolist()]

    def _heat_maps(self) -> Iterator[Figure]:
        """Yield the shares of files x signatures, some files at a time."""
        best, names = self._best(HEAT_SIGNATURES)
        shares, x = self.shares[:, best], [*map(literal, names)]
        axes: Json = {"xaxis": name_axis("signature", names), "rows": "file", "unit": "% of reads"}
        limits = (0, float(shares.max(initial=0)) or 1)
        for at in range(0, min(len(self.files), HEAT_FILES * MOST_HEAT_MAPS), HEAT_FILES):
            some = slice(at, at + HEAT_FILES)
            files = self.files[some]
            title = f"{files[0]} to {files[-1]}" if len(self.files) > HEAT_FILES else ""
            yield heat_map(shares[some], x, files, limits=limits, title=title, **axes)

    def _places(self, sums: Sums) -> Figure:
        best, names = self._best(PLACED_SIGNATURES)
        rows = [sums.dense("count", PLACES, PLACES * i) for i in self.top[best].tolist()]
        shares = 100 * np.array(rows) / np.maximum(np.sum(rows, axis=1), 1)[:, None]
        middles = rounded(100 * (np.arange(PLACES) + 0.5) / PLACES)
        return heat_map(
            shares,
            middles,
            names,
            xaxis=axis("place in the sample, %"),
            rows="signature",
            unit="% of matches",
            limits=(0, float(shares.max())),
        )

    def _demultiplexing(self, reads: int, unknown: int) -> Section:
        names = decoded(self.tallies.signatures.names, "utf-8")
        shares = 100 * self.tallies.sums("samples").dense("count", len(names)) / max(reads, 1)
        best = np.sort(np.argsort(-shares, kind="stable")[:HEAT_SIGNATURES])
        shown = [names[i] for i in best.tolist()]
        found = bars([*map(literal, shown)], rounded(shares[best]))
        figure = bar_figure([found], name_axis("sample", shown), "% of reads")
        most = sorted(self.tallies.barcodes.items(), key=lambda each: (-each[1], each[0]))
        rows = [
            (text.decode("ascii", "replace"), count, _percent(count, reads))
            for text, count in most[:UNKNOWN_BARCODES]
        ]
        columns = (Column("unknown barcode"), _number("reads"), _number("share", "%"))
        text = f"{unknown:,} of {reads:,} reads ({_percent(unknown, reads)} %) are of no sample."
        return Section(
            title="Demultiplexing",
            text=f"{text} Those that fit several samples count for each.",
            figures=[figure],
            table=Table("unknown", columns, rows) if rows else None,
        )

    def _errors(self, sums: Sums) -> Figure:
        positions = int(sums.keys.max()) // KINDS + 1
        counts = sums.dense("matches", KINDS * positions).reshape(positions, KINDS)
        shares, bases = 100 * counts / self.total, list(range(1, positions + 1))
        traces = [
            bars(bases, rounded(shares[:, kind]), colour, name=name)
            for kind, (name, colour) in enumerate(ERRORS)
            if counts[:, kind].any()
        ]
        return bar_figure(traces, axis("base of the signature, from 1"), "% of all matches")


def _scores(sums: Sums) -> Figure:
    trace = bars(sums.keys.tolist(), sums.numbers["count"].tolist())
    xaxis = axis("mean Phred score of a match (higher is better)")
    return bar_figure([trace], xaxis, "matches")


def _long_sample(sample: LongSample) -> Figure:
    """Return the matches along one long sample."""
    name, length, counts = sample
    (text,), width = decoded([name], "utf-8"), length / LONG_PLACES / 1e6
    trace = bars(rounded((np.arange(LONG_PLACES) + 0.5) * width, 6), counts.tolist(), width=width)
    title = f"{text}: {counts.sum():,} matches"
    return bar_figure([trace], axis(f"position on {literal(text)}, Mb"), "matches", title)


# ---- parts of tables ----------------------------------------------------------------------------


def _number(name: str, unit: str = "") -> Column:
    return Column(name, unit, is_number=True)


def _percent(some: Any, of: Any) -> str:
    return f"{100 * some / max(of, 1):.4g}"

"""The truth table of copy numbers: which planted events callers find, and what they call falsely.

    python benchmarks/cnv_truth.py [--kinds panel exome] [--callers r preset] [--events 1000]
        [--quick] [--cnvkit PYTHON] [--record] [--table] [--json FILE] [--try NAME OPTION=VALUE …]

Cohorts are those of `cohort_kinds.py`; what is found and what is false, `cohort_scores.py` says.
Callers: `r`, our defaults, whose calls are those of R's cn.mops; `preset`, ours with the preset of
the kind; both with `+gc`, told the regions' share of G and C; `cnvkit`, if `--cnvkit` names a
Python that has it. `--record` keeps what was found in cnv_truth.json, from which `--table` prints
the table of docs/cnv.md.
"""

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from cohort_kinds import KINDS, QUICK_KINDS
from cohort_scores import Calls, Cell, Tally, wilson
from cohorts import Cohort, Kind
from common import ROOT, machine, markdown, say

import multigpu
from multigpu.formats.tables.counts import Counts
from multigpu.workloads.cnv.results.copy_numbers import direction

RECORDED = Path(__file__).with_suffix(".json")
EVENTS, QUICK_EVENTS = 1_000, 20  # in each cell
Answers = dict[str, dict[str, Tally]]  # by kind, then by caller
GC = "gc"  # name of the column with the share of G and C
CALLERS = ("r", "r+gc", "preset", "preset+gc")


# ---- callers ----------------------------------------------------------------------------------


class Caller(Protocol):
    """Program that calls copy numbers, with its options."""

    name: str

    def call(self, kind: Kind, cohort: Cohort) -> Calls: ...


class Ours:
    """Our `multigpu.cnv`, on CPUs."""

    def __init__(self, name: str, options: dict[str, Any], preset: bool = False) -> None:
        self.name, self.options, self.has_preset = name, options, preset

    def call(self, kind: Kind, cohort: Cohort) -> Calls:
        options = ({"preset": kind.preset} if self.has_preset else {}) | self.options
        counts = with_gc(cohort) if options.get("gc") == GC else cohort.counts
        found = multigpu.cnv(counts, gpus="none", keep_matrices=False, **options)
        regions, table = cohort.counts.regions, found.called
        begin = np.zeros(len(regions.names), np.int64)
        for block in regions.blocks:
            begin[regions.chrom[block.start]] = block.start
        genotypes = getattr(found, "genotypes", None)
        return Calls(
            first=begin[table.chrom] + table.first,
            stop=begin[table.chrom] + table.stop,
            sample=table.sample.astype(np.int64),
            sign=direction(table.copy_number, found.options).astype(np.int64),
            genotypes=None if genotypes is None else genotypes.copies,
        )


def with_gc(cohort: Cohort) -> Counts:
    """Return the counts with another column, GC: the regions' share of G and C."""
    counts = cohort.counts
    values = np.column_stack([counts.values.astype(np.float64), cohort.gc])
    return Counts(counts.regions, (*counts.samples, GC), values)


class CnvKit:
    """CNVkit, in a Python of its own that stays."""

    name = "cnvkit"

    def __init__(self, python: str) -> None:
        script = str(ROOT / "benchmarks" / "cnvkit_calls.py")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([python, script], stdin=pipe, stdout=pipe, text=True)

    def call(self, kind: Kind, cohort: Cohort) -> Calls:
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            regions = cohort.counts.regions
            np.savez(
                file.name, chrom=regions.chrom, start=regions.start, end=regions.end, gc=cohort.gc,
                names=np.array(regions.names), counts=cohort.counts.values,
            )  # fmt: skip
            print(file.name, file=self.process.stdin, flush=True)
            rows = json.loads(self.process.stdout.readline())
        first, stop, sample, sign = np.array(rows, np.int64).reshape(-1, 4).T
        return Calls(first=first, stop=stop, sample=sample, sign=sign)


# ---- runs and the table -----------------------------------------------------------------------


def cohorts(kind: Kind, events: int, seed: int) -> Iterator[Cohort]:
    """Yield cohorts until each label has that many events."""
    planted, number = np.zeros(len(kind.labels), np.int64), 0
    while planted.min() < events:
        cohort = kind.cohort(seed, number)
        planted += np.bincount(cohort.events.label, minlength=len(planted))
        number += 1
        yield cohort


def run(kind: Kind, callers: Iterable[Caller], events: int, seed: int) -> dict[str, Tally]:
    """Return what every caller says of the cohorts of a kind."""
    tallies = {caller.name: Tally() for caller in callers}
    for cohort in cohorts(kind, events, seed):
        for caller in callers:
            begin = time.perf_counter()
            calls = caller.call(kind, cohort)
            tallies[caller.name].add(kind, cohort, calls, time.perf_counter() - begin)
    return tallies


def percent(part: int, whole: int) -> str:
    """Return a share and its interval, %."""
    if not whole:
        return ""
    low, high = wilson(part, whole)
    return f"{100 * part / whole:.1f} ({100 * low:.0f}–{100 * high:.0f})"


def summary(tally: Tally, planted: dict[str, int]) -> dict[str, str]:
    """Return what a caller has in each row of a kind; the number of events, if it had fewer."""
    cells = tally.cells.values()
    found = sum(cell.found for cell in cells)
    rows = {}
    for label, cell in tally.cells.items():
        rows[label] = percent(cell.found, cell.planted)
        if cell.planted < planted[label]:
            rows[label] += f" of {cell.planted:,}"
    rows["false: a sample; of calls"] = (
        f"{tally.false / tally.samples:.3f}; {percent(tally.false, tally.calls)}"
    )
    rows["borders off, regions"] = f"{sum(c.off for c in cells) / 2 / found:.2f}" if found else ""
    if tally.pairs:
        right = 100 * tally.right / tally.pairs, 100 * tally.copies / max(tally.carriers, 1)
        rows["genotypes right; of carriers"] = "{:.1f}; {:.1f}".format(*right)
    return rows


def table(answers: Answers) -> str:
    """Return the table in Markdown: of each kind what is found, %, then what is false."""
    apart: Answers = {}  # with and without the share of G and C
    for kind, tallies in answers.items():
        for name, tally in tallies.items():
            caller, _, gc = name.partition("+")
            apart.setdefault(f"{kind}, --{gc}" if gc else kind, {})[caller] = tally
    names = [*dict.fromkeys(name for tallies in apart.values() for name in tallies)]
    rows = []
    for kind, tallies in apart.items():
        labels = next(iter(tallies.values())).cells
        planted = {x: max(tally.cells[x].planted for tally in tallies.values()) for x in labels}
        columns = {name: summary(tally, planted) for name, tally in tallies.items()}
        for what in dict.fromkeys(what for column in columns.values() for what in column):
            texts = [columns.get(name, {}).get(what, "") for name in names]
            events = f"{planted[what]:,}" if what in planted else ""
            rows.append([kind if what == next(iter(planted)) else "", what, events, *texts])
    return markdown(rows, ["cohorts", "%", "events", *names])


def tally_of(given: dict[str, Any]) -> Tally:
    """Return what was recorded."""
    cells = {label: Cell(**cell) for label, cell in given["cells"].items()}
    return Tally(**given | {"cells": cells})


def recorded() -> Answers:
    """Return what is kept, by kind and caller."""
    kept = json.loads(RECORDED.read_text())["answers"] if RECORDED.exists() else {}
    return {
        kind: {name: tally_of(tally) for name, tally in tallies.items()}
        for kind, tallies in kept.items()
    }


def value(text: str) -> Any:
    """Return a number, true or false as such, anything else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def callers_of(options: argparse.Namespace) -> list[Caller]:
    """Return the callers that were asked for."""
    callers: list[Caller] = []
    for name in options.callers:
        given = {"gc": GC} if name.endswith("+gc") else {}
        callers.append(Ours(name, given, preset=name.startswith("preset")))
    for name, *given in options.attempts:
        pairs = [pair.partition("=") for pair in given]
        callers.append(Ours(name, {key: value(text) for key, _, text in pairs}))
    return callers + ([CnvKit(options.cnvkit)] if options.cnvkit else [])


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", metavar="WORD", help="those whose names have a word")
    parser.add_argument("--callers", nargs="*", choices=CALLERS, default=["r"])
    parser.add_argument(
        "--try", dest="attempts", nargs="+", action="append", default=[],
        metavar="NAME OPTION=VALUE", help="a caller of this name: ours with these options",
    )  # fmt: skip
    parser.add_argument("--cnvkit", metavar="PYTHON", help="a Python that has CNVkit")
    parser.add_argument("--events", type=int, default=EVENTS, help="events of each type, at least")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_EVENTS} events, small exomes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help=f"keep answers in {RECORDED.name}")
    parser.add_argument("--table", action="store_true", help="print what is kept; run nothing")
    parser.add_argument("--json", type=Path, help="write the answers here")
    return parser


def write(path: Path, answers: Answers) -> None:
    kept = {
        kind: {name: asdict(tally) for name, tally in tallies.items()}
        for kind, tallies in answers.items()
    }
    path.write_text(json.dumps({"machine": machine(), "answers": kept}, indent=1) + "\n")


def main(more: Iterable[Caller] = ()) -> None:
    options = parser().parse_args()
    answers: Answers = {}
    if options.table:
        print(table(recorded()))
        return
    callers = [*callers_of(options), *more]
    events = QUICK_EVENTS if options.quick else options.events
    for kind in QUICK_KINDS if options.quick else KINDS:
        if options.kinds and not any(word in kind.name for word in options.kinds):
            continue
        begin = time.perf_counter()
        answers[kind.name] = run(kind, callers, events, options.seed)
        spent = ", ".join(
            f"{name} {tally.seconds:.1f}" for name, tally in answers[kind.name].items()
        )
        say(f"{kind.name}: {time.perf_counter() - begin:.1f} s ({spent})")
        if options.record:
            kept = recorded()
            kept[kind.name] = kept.get(kind.name, {}) | answers[kind.name]
            write(RECORDED, kept)
        if options.json:
            write(options.json, answers)
    print(table(answers))


if __name__ == "__main__":
    main()

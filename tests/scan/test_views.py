"""Matches in a slice of samples, and over the origin of circles, against plain searches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.approximate_cases import with_edits
from support.scan_answers import COLUMNS, Row, Texts, answer, check_rows
from support.scan_cases import planted, random_letters
from support.scanned import fasta

import multigpu
from multigpu import InputError

pytestmark = pytest.mark.process  # runs whole jobs

RULES: list[dict[str, Any]] = [
    {},
    {"hits": "all", "strand": "both", "sample_n": "mismatch"},
    {"hits": "all", "strand": "both", "max_mismatches": 2},
    {"hits": "best", "strand": "both", "max_mismatches": 0.2, "max_ambiguous": 1},
]
EDITS = {"hits": "all", "strand": "both", "max_edits": 2}


def inputs(seed: int) -> tuple[Texts, Texts]:
    """Return samples and signatures; some lie over the origin of a sample, some are longer."""
    rng = np.random.default_rng(seed)
    letters = [random_letters(rng, int(rng.integers(5, 18)), 0.05) for _ in range(8)]
    samples = []
    for number in range(24):
        damaged = [with_edits(rng, each, int(rng.integers(0, 2))) for each in letters]
        record = planted(rng, int(rng.integers(0, 60)), damaged, 0.03, plants=3)
        record = np.roll(record, int(rng.integers(0, 60)))
        samples.append((f"r{number}", record.tobytes().decode()))
    # A circle as long as its signature, and a shorter one, of which the signature has two turns.
    turned = np.roll(letters[0], 3).tobytes().decode()
    samples += [("turned", turned), ("empty", ""), ("ACG", "ACG"), ("n", "N" * 30)]
    signatures = [(f"s{i}", each.tobytes().decode()) for i, each in enumerate(letters)]
    return samples, [*signatures, ("turns", "ACGACG"), ("once", "CGA")]


def check(folder: Path, window: Any, rules: dict[str, Any], **options: Any) -> list[Row]:
    """Compare the rows of several files, cut in several ways, with the answer; return them."""
    samples, signatures = inputs(len(rules))
    windows = [window(len(bases)) for _, bases in samples]
    expected = answer(samples, signatures, rules, windows)
    check_rows(folder, samples, signatures, expected, *COLUMNS, **rules, **options)
    return expected


@pytest.mark.parametrize("within", ["0:20", "-15:", "2:-2", ":", "-30:30", "40:", "-1:1"])
@pytest.mark.parametrize("rules", [*RULES, EDITS], ids=str)
def test_within__is_a_scan_of_the_slices(tmp_path: Path, within: str, rules: Any) -> None:
    border = [int(each) if each else None for each in within.split(":")]

    def window(length: int) -> tuple[int, int]:
        begin, end, _ = slice(*border).indices(length)
        return begin, max(begin, end)

    rows = check(tmp_path, window, rules, within=within)
    assert rows or within == "-1:1" or within == "40:"


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_circular__has_the_matches_over_the_origin(tmp_path: Path, rules: Any) -> None:
    rows = check(tmp_path, lambda length: (0, 2 * length), rules, circular=True)
    lengths = {name: len(bases) for name, bases in inputs(len(rules))[0]}
    assert sum(row[3] > lengths[row[0]] for row in rows) > 3
    assert {("turned", "s0"), ("ACG", "once")} <= {row[:2] for row in rows}
    assert ("ACG", "turns") not in {row[:2] for row in rows}


@pytest.mark.parametrize("options", [{"within": "3:9"}, {"circular": True}])
def test_illegal_letter__anywhere_is_named_by_its_place(options: Any, tmp_path: Path) -> None:
    (tmp_path / "r.fa").write_bytes(fasta([("a", "ACGT"), ("r", "ACGT" * 9 + "!A")]))
    (tmp_path / "s.fa").write_bytes(fasta([("s", "ACGT")]))
    with pytest.raises(InputError, match="'r', position 36"):
        multigpu.scan(tmp_path / "r.fa", tmp_path / "s.fa", gpus="none", **options).to_table()

"""Means of tracks: BED, bedGraph and bigWig."""

import sys
from pathlib import Path

import numpy as np
import pytest
from support.stored import Store

from multigpu.errors import InputError, UsageError
from multigpu.formats.alignments import tracks
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.alignments.tracks import track_means

REGIONS = Regions.of([("chr1", k, k + 30) for k in range(0, 300, 20)] + [("chrM", 0, 9)])
SPANS = [(0, 25, 1.0), (25, 40, 0.5), (60, 200, 0.25), (210, 290, 1.0)]


def means(spans: list[tuple[int, int, float]]) -> list[float]:
    bases = np.zeros(400)
    for start, end, value in reversed(spans):
        bases[start:end] = value
    return [bases[k : k + 30].mean() for k in range(0, 300, 20)]


@pytest.mark.parametrize("kind", ["bedgraph", "bed", "overlapping", "bigwig"])
def test_means__are_of_bases(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, spans = tmp_path / "x", SPANS
    if kind == "bigwig":
        big = pytest.importorskip("pyBigWig").open(str(path), "w")
        big.addHeader([("chr2", 50), ("chr1", 350)])
        starts, ends, values = map(list, zip(*SPANS, strict=True))
        big.addEntries(["chr1"] * 4, starts, ends=ends, values=values)
        big.close()
        monkeypatch.setattr(tracks, "PIECE", 70)
    elif kind == "bedgraph":
        lines = ["track type=bedGraph", *(f"1\t{a}\t{b}\t{x}" for a, b, x in SPANS)]
        path.write_text("\n".join(lines))
    else:
        spans = [(a, b + 30 * (kind == "overlapping"), 1.0) for a, b, _ in SPANS]
        path.write_text("".join(f"chr1\t{a}\t{b}\tname\n" for a, b, _ in spans))
    found = track_means(str(path), REGIONS, rename=kind == "bedgraph")
    assert found[:-1] == pytest.approx(means(spans))
    assert np.isnan(found[-1])


def test_refused__a_bigwig_with_a_value_that_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "x"
    big = pytest.importorskip("pyBigWig").open(str(path), "w")
    big.addHeader([("chr1", 350)])
    big.addEntries(["chr1"] * 2, [0, 9], ends=[9, 19], values=[0.5, np.nan])
    big.close()
    with pytest.raises(InputError, match="the value of chr1:9-19 is nan, no number"):
        track_means(str(path), REGIONS, rename=False)


def test_refused__other_chromosomes_damaged_files_and_a_package_that_is_missing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyBigWig", None)
    for text, rename, problem in (
        (b"7\t0\t9\n", True, "has none of the chromosomes chr1, chrM: it has 7"),
        (b"M\t0\t9\n", False, r"it has M \(rename auto takes names as the same"),
        (b"chr1\t0\t9\t0.5\nchr1\t9\t19\tnan\n", False, "the value of chr1:9-19 is nan, no number"),
        (tracks.BIGWIG[0] + b"nonsense", True, "a bigWig needs pyBigWig: pip install"),
    ):
        with pytest.raises((InputError, UsageError), match=problem):
            track_means(store(text), REGIONS, rename=rename)

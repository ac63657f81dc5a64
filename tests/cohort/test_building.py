"""Cohorts are the same bytes however they came about; what cannot be is refused by one line."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from support.bams import REFERENCES, random_rows, write_alignments
from support.cohorts import SEXES, cohort, of_sexes

import multigpu
from multigpu import Counts, InputError, UsageError
from multigpu.cluster import files
from multigpu.formats.tables.counts_zarr import CountsStore

TABLES = ("cnvs.tsv", "segmentation.tsv", "cnv_regions.tsv", "cnvs.bed", "segments.seg")


def some(first: int, stop: int, **changes: Any) -> Counts:
    """Some samples of a small cohort, whose regions have names."""
    counts, _ = cohort(**changes)
    genes = tuple(f"g{k}" for k in range(len(counts.regions)))
    values: Any = np.ascontiguousarray(counts.values[:, first:stop])
    regions = replace(counts.regions, genes=genes, gc=np.linspace(0, 1, len(genes)))
    return Counts(regions, counts.samples[first:stop], values)


def content(folder: str) -> dict[str, bytes]:
    """All files of a folder."""
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture
def built(tmp_path: Path) -> Callable[..., str]:
    """Return a function that keeps counts as a cohort, and returns its path."""

    def build(counts: Any, name: str = "cohort.zarr", **options: Any) -> str:
        multigpu.build_cohort(counts, output=tmp_path / name, **options)
        return str(tmp_path / name)

    return build


@pytest.mark.parametrize("in_one_step", [True, False], ids=["exchange", "two renames"])
def test_cohort__is_the_same_whatever_was_added_and_removed(
    in_one_step: bool, built: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_one_step:
        monkeypatch.setattr(files, "_exchange", lambda *_: False)
    whole, path = built(some(0, 5), "whole"), built(some(0, 3))
    more = some(3, 6)  # as another table may have them: without names
    more = replace(more, regions=replace(more.regions, genes=(), gc=None))
    multigpu.add_to_cohort(path, more)
    multigpu.remove_from_cohort(path, ["sample6"])
    assert content(path) == content(whole)
    multigpu.remove_from_cohort(path, ["sample2", "sample4"])
    read = multigpu.read_counts(path)
    assert read.samples == ("sample1", "sample3", "sample5")
    assert (read.values == some(0, 5).values[:, ::2]).all()
    assert read.regions.genes == some(0, 1).regions.genes
    assert read.regions.gc is not None
    assert (np.diff(read.regions.gc) > 0).all()
    assert [each.name for each in Path(path).parent.iterdir() if each.name[0] == "."] == []


def test_cohort__of_fractions_takes_whole_counts_and_vice_versa(built: Callable[..., str]) -> None:
    whole, halves = some(0, 2), replace(some(2, 4), values=some(2, 4).values / 2)
    path = built(whole)
    multigpu.add_to_cohort(path, halves)
    assert CountsStore(path).dtype == np.float64
    expected = np.hstack([whole.values, halves.values])
    assert (multigpu.read_counts(path).values == expected).all()


def test_cohort__opens_in_xarray(built: Callable[..., str]) -> None:
    counts = some(0, 4)
    with xr.open_zarr(built(counts)) as store:
        assert store.counts.sel(sample="sample3").values.tolist() == counts.values[:, 2].tolist()
        assert store.correlation.shape == (4, 4)
        assert (store.subset_counts == store.counts[:, store.subset.values].values).all()
        assert str(store.chromosome.values[store.chrom.values[-1]]) == "chr3"


def test_samples_that_are_alike__are_correlated(built: Callable[..., str]) -> None:
    noise = np.random.default_rng(1).normal(0, 0.2, (3, len(some(0, 1).regions)))
    mean = 500 * np.exp(noise[[0, 0, 1, 1, 2, 2]].T)
    values = np.random.default_rng(2).poisson(mean).astype(np.int32)
    path = built(replace(some(0, 6), values=values))
    found = CountsStore(path).read("correlation") - 2 * np.eye(6)
    assert found.argmax(axis=0).tolist() == [1, 0, 3, 2, 5, 4]


def test_qc__has_a_line_of_each_sample(main: Callable[..., Any], built: Callable[..., str]) -> None:
    counts = of_sexes()
    header, *lines = main("cohort", "qc", built(counts)).out.splitlines()
    table = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    assert [row["sample"] for row in table] == [*counts.samples]
    assert [row["sex"] for row in table] == [*SEXES]
    assert [int(row["reads"]) for row in table] == counts.values.sum(axis=0).tolist()
    assert all(row["nearest"] != row["sample"] for row in table)
    (line,) = main("cohort", "qc", built(some(0, 1), "one")).out.splitlines()[1:]
    assert line.split("\t")[2:] == ["NA"] * 6


def tables_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in TABLES}


def test_controls__of_cohorts_give_the_same_bytes(main: Callable[..., Any], tmp_path: Path) -> None:
    """Alignments are counted as the cohort was: with its regions and rules."""
    bams = [write_alignments(tmp_path / f"{k}.bam", random_rows(4000, k)) for k in range(5)]
    counting = ("--window", "2kb", "--min-mapq", "20")
    kept, few = str(tmp_path / "c.zarr"), ("--gpus", "none", "--no-matrices", "--no-report")
    assert main("cohort", "build", *bams[1:4], *counting, "-o", kept).status == 0
    assert main("cohort", "add", kept, bams[4]).status == 0
    controls = [word for bam in bams[1:] for word in ("--controls", bam)]
    by_hand = ("cnv", bams[0], *controls, *counting, "--model", "reference", *few)
    assert main(*by_hand, "-o", str(tmp_path / "a")).status == 0
    assert main("cnv", bams[0], "--cohort", kept, *few, "-o", str(tmp_path / "b")).status == 0
    assert tables_of(tmp_path / "b") == tables_of(tmp_path / "a")
    ended = main("cnv", bams[0], "--cohort", kept, *few, "--min-mapq", "1", "-o", f"{tmp_path}/d")
    assert ended.problem == f"--min-mapq is 1, and {kept} was counted with 20"
    ended = main("cnv", bams[0], "--cohort", kept, *few, "--window", "2kb", "-o", f"{tmp_path}/d")
    assert ended.problem == f"--window: alignments are counted in the regions of {kept}"
    other = [(name, size - 1) for name, size in REFERENCES]
    bam = write_alignments(tmp_path / "other.bam", random_rows(99, 9), other)
    ended = main("cohort", "add", kept, bam)
    assert ended.problem.startswith(f"{kept}: is of another genome than {bam}: ")
    longer = [(name, size + 1) for name, size in REFERENCES]
    bam = write_alignments(tmp_path / "longer.bam", random_rows(99, 9), longer)
    for words in (
        ("cohort", "add", kept, bam),
        ("cnv", bam, "--cohort", kept, "-o", f"{tmp_path}/d"),
    ):
        said = f"chr1 has 300,001 bases, and 300,000 in {kept}: is it of another genome?"
        assert main(*words).problem == f"{bam}: {said}"
    assert main("cohort", "list", kept).out == "1\n2\n3\n4\n"


def test_notes__on_lost_sexes_and_on_fractions(main: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("chrom\tstart\tend\ta\nchr1\t0\t9\t0.5\nchr1\t9\t18\t2\n")
    (tmp_path / "sheet").write_text("path\tsex\na.tsv\tmale\n")
    ended = main("cohort", "build", str(tmp_path / "sheet"), "-o", str(tmp_path / "c.zarr"))
    assert ended.status == 0
    assert "the counts have fractions" in ended.err
    assert "sexes in a sample sheet are not kept: `cnv --sex FILE` gives them" in ended.err


def other_regions() -> Counts:
    """Counts of another sample, in regions of which one has another end."""
    counts = replace(some(4, 5), samples=("x",))
    ends = counts.regions.end.copy()
    ends[7] += 1
    return replace(counts, regions=replace(counts.regions, end=ends))


REFUSED = [
    (lambda c: multigpu.build_cohort(some(0, 1), output=c), "`multigpu cohort add` adds samples"),
    (lambda c: multigpu.build_cohort(some(0, 1), output="/"), "already: give another name"),
    (lambda c: multigpu.build_cohort(some(0, 1), output=""), "the output has no name"),
    (lambda c: multigpu.build_cohort(some(0, 1), output=f"{c}/no/x"), "there is no directory"),
    (lambda c: multigpu.build_cohort([c, c], output=f"{c}.new"), "a cohort is given alone"),
    (lambda c: multigpu.add_to_cohort(c, some(1, 5)), "already in the cohort: sample2, sample3"),
    (lambda c: multigpu.add_to_cohort(c, other_regions()),
     "region 8 of the cohort is chr1:175000-200000, of the new samples chr1:175000-200001"),
    (lambda c: multigpu.add_to_cohort(c, replace(some(4, 5), values=0 * some(4, 5).values)),
     "without reads"),
    (lambda c: multigpu.remove_from_cohort(c, ["sampel2"]), "sampel2; did you mean sample2"),
    (lambda c: multigpu.remove_from_cohort(c, [f"sample{k}" for k in (1, 2, 3)]), "no sample"),
    (lambda c: multigpu.cnv(some(0, 1), cohort=c),
     "sample1 is in the cohort already: `multigpu cohort remove .* sample1` takes it out"),
    (lambda c: multigpu.cnv(some(4, 5), cohort=c, model="exome"), "model reference only"),
    (lambda c: multigpu.cnv(some(4, 5), cohort=c, controls=c), "not both"),
    (lambda c: multigpu.cnv(some(4, 5), cohort=f"{c}.tsv"), "there is no such file"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
def test_refused__what_cannot_be(
    call: Callable[[str], Any], problem: str, built: Callable[..., str]
) -> None:
    path = built(some(0, 3))
    before = content(path)
    with pytest.raises(UsageError, match=problem) as error:
        call(path)
    assert "\n" not in str(error.value)
    assert content(path) == before


@pytest.mark.parametrize("name", ["counts/c/1/0", "start/c/0", "sample/c/0", "zarr.json"])
@pytest.mark.parametrize("damage", ["gone", "cut", "changed"])
def test_refused__a_damaged_cohort(name: str, damage: str, built: Callable[..., str]) -> None:
    path = built(some(0, 3))
    file = Path(path, name)
    stored = file.read_bytes()
    changed = {"cut": stored[: len(stored) // 2], "changed": stored[:-9] + b"~" + stored[-8:]}
    file.unlink()
    if damage != "gone":
        file.write_bytes(changed[damage])
    with pytest.raises(InputError) as error:
        multigpu.read_counts(path)
    assert "\n" not in str(error.value)


def test_refused__while_another_run_changes_it(built: Callable[..., str]) -> None:
    path = built(some(0, 3))
    with files.folder_beside(path), pytest.raises(UsageError, match="another run is writing it"):
        multigpu.add_to_cohort(path, some(3, 4))
    store = CountsStore(path)
    multigpu.remove_from_cohort(path, ["sample1"])
    with pytest.raises(InputError, match="was changed while it was read"):
        store.counts()
    shutil.rmtree(path)

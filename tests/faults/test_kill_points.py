"""The process ends at a call to the file system; resumed, the run ends in the same bytes.

`make test` tries a few of these points, `make soak` as many as go into ten minutes. Some of the
runs that go on end at a point as well.
"""

import json
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest
from faults.conftest import simulate
from faults.kill_points import KILLED, Ended, Point, run, start_forks
from support.bams import random_rows, write_alignments

from multigpu.workloads.cnv.output.folder import MATRICES

FEW = 3  # points of each job, unless there is time for more
OF_STORE = 0.05  # share of the calls for files of a Zarr store
AGAIN = 0.3  # share of the resumed runs that end before their time, too
STOPPED = (KILLED, 1, 2, 143)  # 1 and 2: by an error of the file system
TIMED = ("summary.json", "report.html")  # they tell when they were made


@dataclass(frozen=True)
class Job:
    """A command whose runs are killed.

    arguments  all but the inputs
    inputs     names of files
    older      arguments of a run before it, whose results lie there when it begins
    """

    name: str
    arguments: tuple[str, ...]
    inputs: tuple[str, ...]
    older: tuple[str, ...] = ()

    def command(self, inputs: Path, *more: str) -> list[str]:
        files = [str(inputs / name) for name in self.inputs]
        arguments = [argument.format(inputs) for argument in self.arguments]
        where = () if self.name == "count" else ("--gpus", "none")
        return [arguments[0], *files, *arguments[1:], *where, *more]


SCAN = ("scan", "-s", "{}/signatures.fa", "--max-chunk-bytes", "15000", "-o", "hits.tsv")
DOCK = ("dock", "--pocket", "{}/pocket.npz", "--precision", "60", "--max-chunk-bytes", "1")
CNV = ("cnv", "-o", "out", "--summary", "summary.json", "--no-report")
ALIGNED = ("--window", "2000", "--no-vcf")

JOBS = (
    Job("scan", (*SCAN, "--summary", "summary.json"), ("samples.fq",)),
    Job("count", ("count", "--window", "2000", "-o", "counts.tsv"), ("a.bam", "b.bam")),
    Job("cnv", (*CNV, "--per-sample"), ("counts.tsv",), (*CNV, "--model", "haplo")),
    Job("cnv_of_alignments", (*CNV, *ALIGNED), ("a.bam", "b.bam"), (*CNV, "--robust", "0.1")),
    Job("dock", (*DOCK, "-o", "poses.sdf", "--report", "report.html"), ("ligands.sdf",)),
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    start_forks()
    folder = tmp_path_factory.mktemp("inputs")
    signatures, samples = folder / "signatures.fa", folder / "samples.fq"
    simulate("signatures", "--min-length", 20, "--max-length", 60, "--count", 5, "-o", signatures)
    lengths = ("--min-length", 500, "--max-length", 5000, "--clean", 2, "--infected", 20)
    simulate("samples", "--signatures", signatures, *lengths, "-o", samples)
    cohort = ("--regions", 900, "--samples", 4, "--chromosomes", 3, "--cnvs", 9)
    simulate("counts", *cohort, "-o", folder / "counts.tsv")
    simulate("ligands", "--count", 5, "-o", folder / "ligands.sdf")
    simulate("pocket", "--points", 12, "--spacing", 1.5, "-o", folder / "pocket.npz")
    for seed, name in enumerate(("a.bam", "b.bam")):
        write_alignments(folder / name, random_rows(2000, seed))
    with (folder / "ligands.sdf").open("a") as file:
        file.write("bad\n\n\nno molecule\n$$$$\n")  # there are exit status 3 and a table of errors
    return folder


class Trials:
    """Runs of a job in folders of their own, and what an undisturbed one left and called."""

    def __init__(self, job: Job, inputs: Path, place: Path) -> None:
        self._job, self._place = job, place
        self._command, self._number = job.command(inputs), 0
        self._before = place / "before"
        self._before.mkdir()
        if job.older:
            older = Job("older", job.older, job.inputs).command(inputs)
            assert run(self._before, older).status == 0
        folder = self._folder()
        self.undisturbed = self._run(folder)
        assert self.undisturbed.status in (0, 3), self.undisturbed.err
        self._wanted = contents(folder)

    def points(self, chance: random.Random) -> Iterator[Point]:
        """All that are of interest, in an order of chance, and again and again.

        Calls for the files of a Zarr store are many, and one as good as another.
        """
        numbers = [
            number for number, (_, path) in enumerate(self.undisturbed.calls, 1)
            if f"{MATRICES}/" not in path or chance.random() < OF_STORE
        ]  # fmt: skip
        points = [Point(n, "end", after) for n in numbers for after in (False, True)]
        points += [Point(n, "error") for n in numbers]
        points += [Point(n, "signal", after=True) for n in numbers]
        while True:
            yield from chance.sample(points, len(points))

    def disturb(self, point: Point, chance: random.Random) -> None:
        """A run that ends at a point, and what follows until one comes to its end."""
        folder = self._folder()
        ended, said = self._run(folder, point), [str(point)]
        while ended.status in STOPPED:
            assert "Traceback" not in ended.err
            assert "an internal error" not in ended.err, (said, ended.err)
            again = None
            if chance.random() < AGAIN:
                number = chance.randint(1, len(self.undisturbed.calls))
                again = Point(number, "end", chance.random() < 0.5)
            said.append(f"resumed, {again}")
            ended = self._run(folder, again, "--resume")
            assert again or ended.status == self.undisturbed.status, (said, ended.err)
        assert contents(folder) == self._wanted, said
        if point.fault != "error":  # after one, what could not be removed is left
            assert hidden(folder) == [], said
        shutil.rmtree(folder)

    def _run(self, folder: Path, point: Point | None = None, *more: str) -> Ended:
        command = self._command
        if more and self._job.name == "count":  # it has no journal: it is begun once more
            more = ()
        return run(folder, [*command, *more], point)

    def _folder(self) -> Path:
        self._number += 1
        folder = self._place / str(self._number)
        shutil.copytree(self._before, folder)
        return folder


def contents(folder: Path) -> dict[str, bytes]:
    """All files that are not hidden; of those that tell a time only that they are whole."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not any(part.startswith(".") for part in Path(name).parts):
            found[name] = b"" if name in TIMED else path.read_bytes()
    if "summary.json" in found:
        assert json.loads((folder / "summary.json").read_text())["version"] == 1
    if "report.html" in found:
        assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    return found


def hidden(folder: Path) -> list[str]:
    """What runs keep for themselves: journals, locks, parts, temporary names."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob(".*"))


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_run__that_ends_at_any_call_goes_on_to_the_same_bytes(
    job: Job, inputs: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seconds, seed = (request.config.getoption(name) for name in ("--kill-seconds", "--seed"))
    trials, chance = Trials(job, inputs, tmp_path), random.Random(f"{job.name} {seed}")
    points, end = trials.points(chance), time.monotonic() + seconds / len(JOBS)
    tried = 0
    for point in points if seconds else islice(points, FEW):
        trials.disturb(point, chance)
        tried += 1
        if seconds and time.monotonic() > end:
            break
    print(f"{job.name}: {tried} kill points of {len(trials.undisturbed.calls)} calls")


@pytest.mark.parametrize("change", [("add", "b.tsv"), ("remove", "sample1")], ids=" ".join)
def test_cohort__after_any_call_is_the_old_or_the_new_one(
    change: tuple[str, str], inputs: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seconds, seed = (request.config.getoption(name) for name in ("--kill-seconds", "--seed"))
    command = ("cohort", change[0], "c.zarr", change[1])
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    rows = [line.split("\t") for line in (inputs / "counts.tsv").read_text().splitlines()]
    for name, columns in (("a.tsv", slice(3, 5)), ("b.tsv", slice(5, 7))):
        lines = ("\t".join([*row[:3], *row[columns]]) for row in rows)
        (before / name).write_text("\n".join(lines) + "\n")
    assert run(before, ("cohort", "build", "a.tsv", "-o", "c.zarr")).status == 0
    shutil.copytree(before, after)
    undisturbed = run(after, command)
    assert undisturbed.status == 0, undisturbed.err
    calls = range(1, len(undisturbed.calls) + 1)
    points = [Point(number, "end", late) for number in calls for late in (False, True)]
    random.Random(f"{change} {seed}").shuffle(points)
    points.sort(key=lambda point: undisturbed.calls[point.number - 1][0] != "exchange")
    end = time.monotonic() + seconds / len(JOBS)
    for point in points if seconds else points[: 2 + FEW]:
        if seconds and time.monotonic() > end:
            break
        folder = tmp_path / f"{point}"
        shutil.copytree(before, folder)
        assert run(folder, command, point).status in (KILLED, 0)  # 0: the call has failed
        is_old = contents(folder) == contents(before)
        assert is_old or contents(folder) == contents(after), point
        assert run(folder, command).status == (0 if is_old else 2)
        assert contents(folder) == contents(after), point
        assert hidden(folder) == [], point

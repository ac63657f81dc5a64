"""The generators: same seed, same bytes; what is asked for is what is there."""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from support.program import Run

from multigpu.errors import UsageError
from multigpu.kernels.bases import encode
from multigpu.tools.simulate import command
from multigpu.workloads.scan import simulate

SAMPLES: dict[str, Any] = {
    "clean": 30, "infected": 10, "min_signatures": 1, "max_signatures": 3,
    "min_length": 200, "max_length": 400, "min_phred": 10, "max_phred": 30,
    "n_ratio": 0.0, "seed": 1,
}  # fmt: skip
SIGNATURES: dict[str, Any] = {
    "count": 8, "min_length": 20, "max_length": 40, "n_ratio": 0.0, "seed": 4,
}  # fmt: skip


def written(generate: Callable[..., None], *values: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    generate(out, *values, **options)
    return out.getvalue()


def fasta_sequences(text: bytes) -> list[bytes]:
    return text.split(b"\n")[1::2]


def as_arrays(sequences: list[bytes]) -> list[NDArray[np.uint8]]:
    return [np.frombuffer(sequence, np.uint8) for sequence in sequences]


def make_signatures(**options: Any) -> list[NDArray[np.uint8]]:
    return as_arrays(fasta_sequences(written(simulate.signatures, **(SIGNATURES | options))))


def make_samples(signatures: list[NDArray[np.uint8]], **options: Any) -> bytes:
    return written(simulate.samples, signatures, **(SAMPLES | options))


def occurs(signature: NDArray[np.uint8], sample: bytes) -> bool:
    """Whether the letters' sets share a base at every position of some place."""
    sets, wanted = encode(np.frombuffer(sample, np.uint8)), encode(signature)
    places = np.arange(sets.size - wanted.size + 1)
    for offset, bases in enumerate(wanted):
        places = places[sets[places + offset] & bases != 0]
        if not places.size:
            return False
    return True


def test_bytes_are_those_of_every_earlier_version() -> None:
    """A benchmark of last year is a benchmark of the same data: change these only on purpose."""
    wanted = written(simulate.signatures, 50, 30, 2000, 0.1, 7)
    assert wanted != written(simulate.signatures, 50, 30, 2000, 0.1, 8)
    shape = {"clean": 300, "max_length": 9000, "min_length": 6000, "n_ratio": 0.07}
    samples = make_samples(as_arrays(fasta_sequences(wanted))[:9], **shape)
    assert hashlib.sha256(wanted).hexdigest()[:16] == "7ad051afd240ca8e"
    assert hashlib.sha256(samples).hexdigest()[:16] == "a715fd1d9919e50f"


def test_signatures__names_count_and_lengths() -> None:
    lines = written(simulate.signatures, 3000, 5, 8, 0.0, 1).split(b"\n")
    assert lines.pop() == b""
    assert lines[::2] == [b">sig%d" % number for number in range(3000)]
    assert {len(line) for line in lines[1::2]} == {5, 6, 7, 8}
    assert written(simulate.signatures, 0, 5, 8, 0.0, 1) == b""


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5, 1.0])
def test_signatures__share_of_ns_and_of_each_base(ratio: float) -> None:
    made = make_signatures(count=10, min_length=40_000, max_length=50_000, n_ratio=ratio)
    letters = np.concatenate(made)
    shares = np.bincount(letters, minlength=256) / letters.size
    assert shares[ord("N")] == pytest.approx(ratio, abs=0.003)
    assert shares[list(b"ACGT")] == pytest.approx((1 - ratio) / 4, abs=0.003)
    assert shares[list(b"ACGTN")].sum() == pytest.approx(1)


def test_samples__are_fastq_of_the_lengths_and_qualities_asked_for() -> None:
    lines = make_samples(make_signatures()).split(b"\n")
    assert lines.pop() == b""
    assert lines[::4] == [b"@smp%d" % number for number in range(40)]
    assert set(lines[2::4]) == {b"+"}
    assert all(200 <= len(letters) <= 400 for letters in lines[1::4])
    assert [len(marks) for marks in lines[3::4]] == [len(letters) for letters in lines[1::4]]
    scores = np.frombuffer(b"".join(lines[3::4]), np.uint8) - 33
    assert np.unique(scores).tolist() == list(range(10, 31))
    assert np.bincount(scores)[10:] / scores.size == pytest.approx(1 / 21, abs=0.01)
    text = make_samples(make_signatures(), fasta=True)
    assert fasta_sequences(text) == lines[1::4]
    assert text.startswith(b">smp0\n")


@pytest.mark.parametrize(("low", "high"), [(1, 3), (2, 2), (8, 8), (0, 0)])
def test_samples__infected_ones_hold_that_many_different_signatures(low: int, high: int) -> None:
    signatures = make_signatures()
    text = make_samples(signatures, min_signatures=low, max_signatures=high, min_length=350)
    counts = [sum(s.tobytes() in sample for s in signatures) for sample in text.split(b"\n")[1::4]]
    infected = [count for count in counts if count]
    assert len(infected) == (10 if high else 0)
    places = np.flatnonzero(counts).tolist()
    assert not places or min(places) < 20 <= max(places)  # shuffled among clean ones
    assert all(low <= count <= high for count in infected)
    assert high == low or set(infected) == {1, 2, 3}
    every = make_samples(signatures, clean=0).split(b"\n")[1::4]
    assert len(every) == sum(any(s.tobytes() in each for s in signatures) for each in every) == 10
    assert make_samples([], infected=0).count(b"\n+\n") == 30
    assert make_samples([], infected=0, clean=0) == b""


def test_samples__planted_signatures_do_not_overlap() -> None:
    """Signatures as long together as the sample fit only side by side, or alone."""
    alone = make_samples(as_arrays([b"ACGT" * 50]), max_signatures=1, max_length=200, clean=0)
    assert set(alone.split(b"\n")[1::4]) == {b"ACGT" * 50}
    signatures = as_arrays([b"A" * 30, b"C" * 30, b"G" * 40])
    text = make_samples(signatures, min_signatures=3, min_length=100, max_length=100, clean=0)
    for sample in text.split(b"\n")[1::4]:
        assert sorted(sample) == sorted(b"A" * 30 + b"C" * 30 + b"G" * 40)
        assert all(piece in sample for piece in (b"A" * 30, b"C" * 30))


def test_samples__ns_of_a_signature_become_bases_and_the_sample_gets_its_own() -> None:
    signatures = as_arrays([b"ACRTn" + b"N" * 40 + b"TTTTT"] * 1)
    shape = {"max_signatures": 1, "infected": 300, "clean": 0, "max_length": 200}
    samples = make_samples(signatures, **shape).split(b"\n")[1::4]
    assert all(occurs(signatures[0], sample) for sample in samples)
    assert all(sample.count(b"R") == 1 for sample in samples)
    letters = np.frombuffer(b"".join(samples), np.uint8)
    assert set(letters.tolist()) == set(b"ACGTR")
    noisy = make_samples(signatures, n_ratio=0.2, **shape).split(b"\n")[1::4]
    assert b"".join(noisy).count(b"N") / letters.size == pytest.approx(0.2, abs=0.01)
    assert all(occurs(signatures[0], sample) for sample in noisy)


@pytest.mark.parametrize(("options", "message"), [
    ({"min_length": 500}, "min_length 500 is above max_length 400"),
    ({"min_phred": 31}, "min_phred 31 is above max_phred 30"),
    ({"min_signatures": 4}, "min_signatures 4 is above max_signatures 3"),
    ({"max_signatures": 9}, "max_signatures is 9, but there are 8 signatures"),
    ({"min_length": 60}, r"3 signatures can have \d+ bases together and do not fit"),
])  # fmt: skip
def test_samples__impossible_quantities_are_refused_before_a_byte_is_written(
    options: dict[str, Any], message: str
) -> None:
    signatures, out = make_signatures(), io.BytesIO()
    with pytest.raises(UsageError, match=message):
        simulate.samples(out, signatures, **(SAMPLES | options))
    assert out.getvalue() == b""
    with pytest.raises(UsageError, match="41 is above"):
        make_signatures(min_length=41)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command, arguments)


def test_command__writes_what_the_functions_write(tmp_path: Path) -> None:
    wanted, searched = tmp_path / "sig.fasta", tmp_path / "smp.fastq"
    options = ["--count", "8", "--min-length", "20", "--max-length", "40", "--n-ratio", "0"]
    result = run("signatures", *options, "--seed", "4", "-o", str(wanted))
    assert (result.exit_code, result.output) == (0, "")
    assert wanted.read_bytes() == written(simulate.signatures, **SIGNATURES)
    given = [part for key, value in SAMPLES.items()
             for part in (f"--{key.replace('_', '-')}", str(value))]  # fmt: skip
    result = run("samples", "--signatures", str(wanted), *given, "-o", str(searched))
    assert (result.exit_code, result.output) == (0, "")
    assert searched.read_bytes() == make_samples(make_signatures())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sig.fasta", "smp.fastq"]
    result = run("signatures", "--count", "3", "--min-length", "5", "--max-length", "5")
    assert result.stdout_bytes == written(simulate.signatures, 3, 5, 5, 0.1, 1)


@pytest.mark.parametrize(("words", "problem"), [
    ("signatures --count -1", "count is -1; it must be 0 or more"),
    ("signatures --min-length 0", "min_length is 0; it must be 1 or more"),
    ("signatures --n-ratio 1.5", "n_ratio is 1.5; it must be "),
    ("signatures --n-ratio nan", "n_ratio is nan; it must be "),
    ("signatures --seed -1", "seed is -1; it must be 0 or more"),
    ("samples --signatures s --max-phred 94", "max_phred is 94; it must be "),
])  # fmt: skip
def test_command__refuses_quantities_that_cannot_be(words: str, problem: str) -> None:
    assert str(run(*words.split()).exception).startswith(problem)


def test_output__that_would_replace_the_signatures_is_refused(main: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.fa"
    path.write_text(">s\nACGT\n")
    ended = main("simulate", "samples", "--signatures", str(path), "--fasta", "-o", str(path))
    assert (ended.status, ended.lines[-1].count("is named twice")) == (2, 1)
    assert path.read_text() == ">s\nACGT\n"


def test_output__that_is_there_is_replaced_with_a_note(main: Run, tmp_path: Path) -> None:
    path, truth = str(tmp_path / "out"), str(tmp_path / "truth")
    counts = ("counts", "--regions", "3000", "--cnvs", "1", "--truth", truth)
    for arguments in (("signatures", "--count", "2"), counts):
        Path(path).unlink(missing_ok=True)
        Path(truth).touch()
        first, second = (main("simulate", *arguments, "-o", path).err for _ in range(2))
        note = f"multigpu: note: {path} is there, and is replaced\n"
        assert (note in first, note in second) == (False, True)
        assert (f"{truth} is there" in first) == (truth in arguments)

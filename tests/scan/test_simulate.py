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

from multigpu.errors import Failure, UsageError
from multigpu.formats.sequences.signatures import read_signatures
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


def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "BLOCK_BASES", 1000)


@pytest.mark.parametrize("seed", [0, 1, 2**70])
def test_signatures__same_seed_gives_the_same_bytes(seed: int) -> None:
    first = written(simulate.signatures, **(SIGNATURES | {"seed": seed}))
    assert first == written(simulate.signatures, **(SIGNATURES | {"seed": seed}))
    assert first != written(simulate.signatures, **(SIGNATURES | {"seed": seed + 1}))


def test_bytes_are_those_of_every_earlier_version() -> None:
    """A benchmark of last year is a benchmark of the same data: change these only on purpose."""
    wanted = written(simulate.signatures, 50, 30, 2000, 0.1, 7)
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
    letters = np.concatenate(make_signatures(count=10, min_length=40_000, max_length=50_000,
                                             n_ratio=ratio))  # fmt: skip
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
    assert all(low <= count <= high for count in infected)
    assert high == low or set(infected) == {1, 2, 3}


def test_samples__infected_ones_are_shuffled_among_clean_ones() -> None:
    signatures = make_signatures()
    samples = make_samples(signatures).split(b"\n")[1::4]
    places = [n for n, s in enumerate(samples) if any(x.tobytes() in s for x in signatures)]
    assert len(places) == 10
    assert min(places) < 20 <= max(places)
    assert places != list(range(places[0], places[0] + 10))


def test_samples__planted_signatures_do_not_overlap() -> None:
    """Signatures as long together as the sample fit only side by side, or alone."""
    alone = make_samples(as_arrays([b"ACGT" * 50]), max_signatures=1, max_length=200, clean=0)
    assert set(alone.split(b"\n")[1::4]) == {b"ACGT" * 50}
    signatures = as_arrays([b"A" * 30, b"C" * 30, b"G" * 40])
    text = make_samples(signatures, min_signatures=3, min_length=100, max_length=100, clean=0)
    for sample in text.split(b"\n")[1::4]:
        assert sorted(sample) == sorted(b"A" * 30 + b"C" * 30 + b"G" * 40)
        assert b"A" * 30 in sample
        assert b"C" * 30 in sample


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


def test_samples__all_infected_or_none() -> None:
    signatures = make_signatures()
    every = make_samples(signatures, clean=0).split(b"\n")[1::4]
    assert len(every) == 10
    assert all(any(s.tobytes() in sample for s in signatures) for sample in every)
    assert make_samples([], infected=0).count(b"\n+\n") == 30
    assert make_samples([], infected=0, clean=0) == b""


def test_blocks__of_any_size_hold_the_same_kind_of_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_blocks(monkeypatch)
    signatures = make_signatures(n_ratio=0.3)
    lines = make_samples(signatures, n_ratio=0.1, infected=37, clean=0).split(b"\n")
    assert lines[:-1:4] == [b"@smp%d" % number for number in range(37)]
    assert all(any(occurs(s, sample) for s in signatures) for sample in lines[1::4])


class Recorder(io.BytesIO):
    """Remembers the longest write."""

    longest = 0

    def write(self, data: Any) -> int:
        self.longest = max(self.longest, len(data))
        return super().write(data)


def test_samples__are_written_in_blocks_of_a_few_megabytes() -> None:
    out = Recorder()
    simulate.samples(out, [], **(SAMPLES | {"clean": 40_000, "infected": 0}))
    assert out.tell() > 10 * simulate.BLOCK_BASES
    assert out.longest < 3 * simulate.BLOCK_BASES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_length": 500}, "min-length 500 is more than max-length 400"),
        ({"min_length": 0}, "length 0 to 400; it must lie within 1 to"),
        ({"max_phred": 94}, "phred 10 to 94; it must lie within 0 to 93"),
        ({"min_phred": 31}, "min-phred 31 is more than max-phred 30"),
        ({"n_ratio": 1.5}, "n-ratio is 1.5; it must be 0 to 1"),
        ({"n_ratio": float("nan")}, "n-ratio is nan"),
        ({"seed": -1}, "seed is -1; it must be 0 or more"),
        ({"clean": -1}, "clean is -1"),
        ({"clean": 10**400}, "clean is 10+…; it must be 0 to 4,294,967,295"),
        ({"infected": -2}, "infected is -2"),
        ({"min_signatures": 4}, "min-signatures 4 is more than max-signatures 3"),
        ({"max_signatures": 9}, "max-signatures is 9, but there are 8 signatures"),
        ({"min_length": 19}, r"signature 1 of 8 \(\d+ bases\) is longer than the .* 19 bases\)"),
        ({"min_length": 60}, r"3 signatures can have \d+ bases together and do not fit"),
    ],
)  # fmt: skip
def test_samples__impossible_quantities_are_refused_before_a_byte_is_written(
    options: dict[str, Any], message: str
) -> None:
    out = io.BytesIO()
    signatures = make_signatures()
    with pytest.raises(UsageError, match=message):
        simulate.samples(out, signatures, **(SAMPLES | options))
    assert out.getvalue() == b""
    for wrong, problem in (({"count": -1}, "count is -1"), ({"min_length": 41}, "41 is more")):
        with pytest.raises(UsageError, match=problem):
            make_signatures(**wrong)


def test_demo__is_small_and_a_third_of_it_is_infected(tmp_path: Path) -> None:
    searched, wanted = simulate.write_demo(tmp_path / "new" / "demo")
    assert (searched.name, wanted.name) == ("samples.fastq", "signatures.fasta")
    signatures = read_signatures([str(wanted)]).letters
    samples = searched.read_bytes().split(b"\n")[1::4]
    assert (len(signatures), len(samples)) == (40, 60)
    assert 2e6 < searched.stat().st_size < 7.5e6
    assert sum(any(occurs(s, sample) for s in signatures) for sample in samples) == 20
    again, _ = simulate.write_demo(tmp_path)
    assert again.read_bytes() == searched.read_bytes()


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


def test_command__defaults_are_the_classical_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(simulate, "signatures", lambda _out, **given: calls.append(given))
    monkeypatch.setattr(simulate, "samples", lambda _out, _signatures, **given: calls.append(given))
    (tmp_path / "sig.fasta").write_bytes(b">a\nA\n")
    assert run("signatures").exit_code == 0
    assert run("samples", "--signatures", str(tmp_path / "sig.fasta")).exit_code == 0
    assert calls[0] == {
        "count": 1000, "min_length": 3000, "max_length": 10000, "n_ratio": 0.1, "seed": 1,
    }  # fmt: skip
    assert calls[1] == {
        "clean": 2000, "infected": 20, "min_signatures": 1, "max_signatures": 2,
        "min_length": 100000, "max_length": 200000, "min_phred": 10, "max_phred": 30,
        "n_ratio": 0.1, "seed": 1, "fasta": False,
    }  # fmt: skip


def test_command__writes_into_a_special_file_and_names_what_it_cannot_write(
    tmp_path: Path,
) -> None:
    assert run("signatures", "--count", "3", "-o", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()
    for path, kind, problem in (
        (str(tmp_path / "none" / "sig.fasta"), UsageError, "there is no directory"),
        ("/dev/full", Failure, "/dev/full: cannot be written: the disk is full"),
    ):
        result = run("signatures", "-o", path)
        assert isinstance(result.exception, kind)
        assert problem in str(result.exception)


def test_command__help_shows_the_classical_call() -> None:
    text = run("--help").output
    assert "gen_sig 1000 3000 10000 0.1" in text
    assert "gen_sample sig.fasta 2000 20 1 2 100000 200000 10 30 0.1" in text


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

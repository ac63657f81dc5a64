"""Damaged files of every format are answered by a result or by one line, whatever is in them.

`make test` tries a few mutants of each format, `make soak` many, and files that become gigabytes
when they are decompressed. The last mutant that was tried lies in the folder of the test.
"""

import logging
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import hypothesis
import pytest
from faults.mutant_formats import FORMATS, Format
from hypothesis import strategies as st

from multigpu.errors import Failure

FEW = 40  # mutants of each format, unless more are asked for
HANGS = timedelta(seconds=20)
MEMORY = 2 << 30  # bytes more than were taken before
LONGEST_MESSAGE = 2000  # characters: longer ones repeat what is in the file
BOMBS = [
    *((name, number) for name in ("gzip", "bgzf", "zstd", "bam") for number in (0, 1)),
    ("npz", 0), ("kept_counts", 0),
]  # fmt: skip


Change = Callable[[st.DrawFn, bytes], bytes]

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
ABSURD_TEXTS = (
    b"-1", b"0", b"1", b"1e308", b"-1e308", b"1e-320", b"nan", b"inf", b"-inf", b"", b"x", b"1_0",
    b"99999999999999999999", b"2147483647", b"2147483648", b"4294967296", b"9223372036854775807",
    b"9223372036854775808", b"-2147483649", b"1" * 400, b"0.1.2", b"1e999", b"+5", b"\xff",
    b"1000000",
)  # fmt: skip
ABSURD_WORDS = (
    -1, 0, 1, 2, 255, 65_536, 1_000_000_000, 2**31 - 1, -(2**31), -2, 2**30, 2**24, 100,
)  # fmt: skip


def flip(draw: st.DrawFn, content: bytes) -> bytes:
    """Change one to eight bits."""
    changed = bytearray(content)
    for at in draw(st.lists(st.integers(0, 8 * len(content) - 1), min_size=1, max_size=8)):
        changed[at // 8] ^= 1 << at % 8
    return bytes(changed)


def cut(draw: st.DrawFn, content: bytes) -> bytes:
    """Keep a part from the beginning, often up to the end of a line."""
    at = draw(st.integers(1, max(1, len(content) - 1)))
    if draw(st.integers(0, 2)) == 0:
        at = max(1, content.rfind(b"\n", 0, at) + 1)
    return content[:at]


def splice(draw: st.DrawFn, content: bytes) -> bytes:
    """Continue the beginning from somewhere else: a piece is there twice, or missing."""
    at = draw(st.integers(0, len(content)))
    after = draw(st.integers(0, len(content)) | st.integers(max(0, at - 200), at + 200))
    return content[:at] + content[after:]


def write_texts(draw: st.DrawFn, content: bytes) -> bytes:
    """Replace one to three numbers."""
    for absurd in draw(st.lists(st.sampled_from(ABSURD_TEXTS), min_size=1, max_size=3)):
        if places := [match.span() for match in NUMBER.finditer(content)]:
            a, b = draw(st.sampled_from(places))
            content = content[:a] + absurd + content[b:]
    return content


def write_words(draw: st.DrawFn, content: bytes) -> bytes:
    """Overwrite one to three numbers of four bytes, of two or eight now and then."""
    changed = bytearray(content)
    near = draw(st.sampled_from([256, len(content)]))  # headers are in front
    for word in draw(st.lists(st.sampled_from(ABSURD_WORDS), min_size=1, max_size=3)):
        size = draw(st.sampled_from([2, 4, 4, 4, 8]))
        at = draw(st.integers(0, max(0, min(near, len(content)) - size)))
        at -= draw(st.sampled_from([0, at % 4, at % 4]))
        changed[at : at + size] = (word % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed[: len(content)])


BINARY: tuple[Change, ...] = (flip, flip, cut, splice, splice, write_words, write_words)
TEXT: tuple[Change, ...] = (flip, cut, splice, splice, write_texts, write_texts)


@st.composite
def mutants(draw: st.DrawFn, of: Format) -> bytes:
    """Draw a damaged file, or one in which something damaged is stored well."""
    inner = of.inner if draw(st.booleans()) else None
    text, content = (inner.is_text, inner.content) if inner else (of.is_text, of.content)
    changed = draw(st.sampled_from(TEXT if text else BINARY))(draw, content)
    return inner.wrap(changed) if inner else changed


def check_answer(of: Format, mutant: bytes, is_bomb: bool = False) -> None:
    """Require a result or an error that is short. Other errors than our own pass through."""
    of.path.write_bytes(mutant)
    try:
        of.parse()
    except Failure as error:
        check_refusal(error, is_bomb)


def check_refusal(error: Failure, is_bomb: bool) -> None:
    assert 0 < len(str(error)) <= LONGEST_MESSAGE
    cause: BaseException | None = error
    while cause is not None and not (is_bomb and "memory" in str(error)):
        assert not isinstance(cause, MemoryError)
        cause = cause.__cause__


@contextmanager
def limited_memory() -> Iterator[None]:
    """Limit the address space to what this process has now, and MEMORY."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def quiet() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", FORMATS)
def test_mutants__are_answered(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    count, seed = (request.config.getoption(option) for option in ("--mutants", "--seed"))
    of = FORMATS[name](tmp_path)
    of.parse()

    @hypothesis.seed(f"{name} {seed}")
    @hypothesis.settings(
        max_examples=count or FEW, deadline=HANGS, database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(mutants(of))
    def check(mutant: bytes) -> None:
        check_answer(of, mutant)

    with limited_memory():
        check()


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("name", "number"), BOMBS)
def test_bomb__told(name: str, number: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--mutants"):
        pytest.skip("only with --mutants: some take half a minute")
    of = FORMATS[name](tmp_path)
    with limited_memory():
        check_answer(of, of.bombs[number](), is_bomb=True)

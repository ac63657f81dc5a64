"""URLs of servers that are slow, fail, break off, know no ranges or change their files."""

from collections.abc import Iterator

import pytest
from support.stored import CUT, READS, STORED, TRUNCATED, content, inspect_source
from support.web import Web, served

from multigpu.errors import InputError
from multigpu.formats.storage import stored_streams, urls

LARGE = READS * 40


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(urls, "WAITS", (0.01, 0.02, 0.03))
    monkeypatch.setattr(stored_streams, "REMOTE_CHUNK", 100_000)
    with served() as web:
        web.files = {"large.fq": LARGE, **{f"{name}.fq": text for name, text in STORED.items()}}
        yield web


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("compression", STORED)
def test_url__of_a_web_server_is_read(web: Web, compression: str, ranges: bool) -> None:
    web.ranges, url = ranges, f"{web.url}/{compression}.fq"
    source = inspect_source(url)
    assert (source.compression, source.cuttable) == (compression, False)
    assert source.size == len(STORED[compression])
    assert content(url) == READS


@pytest.mark.parametrize("stored", CUT)
def test_url__that_ends_early_is_an_error(web: Web, stored: bytes) -> None:
    web.files["cut.fq"] = stored
    with pytest.raises(InputError, match=rf"/cut\.fq: .* {TRUNCATED}"):
        content(f"{web.url}/cut.fq")


@pytest.mark.parametrize(
    "faults",
    [[503], [500, 503, 502], ["cut"], ["cut", "cut", 503], ["slow"], [None, None, "cut"]],
    ids=str,
)
@pytest.mark.parametrize("ranges", [True, False])
def test_url__is_asked_again_after_failures(web: Web, faults: list[object], ranges: bool) -> None:
    web.ranges = ranges
    source = inspect_source(f"{web.url}/large.fq")
    web.pieces.clear()
    web.faults.extend(faults)
    assert b"".join(block.tobytes() for block in source.blocks(50_000)) == LARGE
    assert not web.faults or not ranges  # else all of it is one answer
    if ranges and faults[0] is None:  # it is continued at the byte that was reached
        assert web.pieces.count(0) == 1
        assert len(web.pieces) < 5 + len(LARGE) / 100_000


@pytest.mark.parametrize(("faults", "problem"), [
    ([503] * 9, "cannot be read: its server answers 503"),
    ([403], "cannot be read: its server answers 403"),
    ([404], "cannot be read: there is no such file"),
    (["cut"] * 40, "cannot be read: "),
], ids=["503", "403", "404", "cut"])  # fmt: skip
def test_url__that_fails_is_one_error(web: Web, faults: list[object], problem: str) -> None:
    source = inspect_source(f"{web.url}/large.fq")
    web.faults.extend(faults)
    with pytest.raises(InputError, match=f"^{web.url}/large.fq: {problem}"):
        list(source.blocks(1 << 20))


@pytest.mark.parametrize("after", ["cut", None])
def test_url__that_changes_while_it_is_read_is_an_error(web: Web, after: object) -> None:
    source = inspect_source(f"{web.url}/large.fq")

    def change() -> None:
        web.version, web.files["large.fq"] = "2", LARGE.replace(b"read1\n", b"read2\n")

    web.faults.extend([None, change, after])
    with pytest.raises(InputError, match=r"large.fq: was changed while it was read"):
        list(source.blocks(1 << 20))


def test_url__without_ranges_is_noted_once(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    web.ranges = False
    source = inspect_source(f"{web.url}/large.fq")
    for _ in range(2):
        assert sum(map(len, source.blocks(1000))) == len(LARGE)
    assert [text for text in caplog.messages if "no ranges" in text] == [
        f"multigpu: {web.url}/large.fq: its server sends no ranges, so it is read as a stream"
    ]


@pytest.mark.parametrize("name", ["absent.fq", "absent.fq.gz"])
def test_url__of_nothing_is_said_at_once(web: Web, name: str) -> None:
    for url, problem in (
        (f"{web.url}/{name}", f"{name}: cannot be read: there is no such file"),
        ("http://127.0.0.1:9/a.fq", r"a\.fq: cannot be read: connect call failed"),
        ("nowhere://x", "x: cannot be read: Protocol not known: nowhere"),
    ):
        with pytest.raises(InputError, match=problem):
            inspect_source(url)

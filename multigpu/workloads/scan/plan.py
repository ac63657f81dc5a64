"""Plan of a scan: spans of the samples, and the memory that these take."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.dispatch import LINE_PER_THREAD
from multigpu.cluster.engine.plan import Capacity, Cost
from multigpu.cluster.engine.workload import Series
from multigpu.errors import TooLittleMemory, option
from multigpu.formats.sequences.fastq import LAST_RECORD_BYTES
from multigpu.formats.sequences.ranges import bgzf_spans
from multigpu.formats.sequences.registry import FORMATS, RECORD_FORMATS
from multigpu.formats.sequences.signatures import Signatures
from multigpu.formats.sequences.spans import (
    BgzfSpan,
    FileSpan,
    Span,
    StreamSpan,
    file_spans,
    stream_spans,
)
from multigpu.formats.sequences.streams import stream_blocks
from multigpu.formats.storage.read_ahead import BLOCKS_AHEAD, LARGEST_BLOCK
from multigpu.formats.storage.sources import Source
from multigpu.kernels.scan.seeds import CPU, EXPECTED_BASES, EXPECTED_N, GPU, IndexSize, size_of
from multigpu.run.options import DEFAULT_CHUNK_BYTES, RunOptions
from multigpu.run.plan import ChunkPlan, largest_chunk, memory_budget
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.parts import ScanPart
from multigpu.workloads.scan.patterns import longest_match, pattern_lengths

# Python, NumPy, Numba while it compiles, PyArrow.
PROGRAM_BYTES = 400 << 20
# Buffers are made larger than what they are first taken for.
BUFFER_SLACK = 9 / 8
# Memory for each byte of a chunk: for the text of a stream, or the table of a file's records.
TEXT_BYTES = 1.0
# Besides, for each base of a chunk: letters, and on a CPU planes.
BASE_BYTES = 1.5
# The letters that are searched, where these are not all that are loaded.
COPY_BYTES = 1.0
# Bases that are searched for each of a circle, where it is short.
CIRCLE_BASES = 2

# A chunk on the only GPU of this process. With smaller ones its threads wait for each other, with
# larger ones the GPU waits for the first.
CHUNK_BYTES_ALONE = 48 << 20
# Pairs on CPUs, whose text is copied several times: the C library gives larger memory back to the
# system each time, which then clears every page again.
CHUNK_BYTES_OF_PAIRS = 24 << 20
# Of a file that a worker opens: threads that decompress hold the interpreter once for each.
SERIES_BLOCK = 32 << 20
# On several GPUs of this process, whose threads wait for each other at each chunk.
CHUNK_BYTES_SHARED = 128 << 20
PROCESS_BYTES_SHARED = 3 << 30
# On the GPUs of other processes: each chunk costs several messages.
CHUNK_BYTES_DISPATCHED = 256 << 20
LANE_BYTES_DISPATCHED = 768 << 20

# Letters and planes of the bases, offsets and counts of the records.
DEVICE_BYTES_PER_BYTE = 1.0
# Places where exact parts of signatures match, in a search with errors.
ERROR_BYTES_PER_BYTE = 0.5
# On a GPU: modules, steps of patterns, and for each chunk tables and results.
FIXED_DEVICE_BYTES = 96 << 20
LANE_DEVICE_BYTES = 16 << 20

# Of a search with edits, in each chunk in progress: steps of an alignment; for each base of the
# longest match bit vectors and a path, for each edit the ends to verify and rows of the alignment.
ALIGNMENT_BYTES = 8 << 20
MATCH_BYTES = 12
EDIT_BYTES = 128

# Of the search with errors: a pattern with its pieces, and for each base steps and seeds.
PATTERN_BYTES = 256
STEP_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class ScanPlan(ChunkPlan):
    """Sizes of the chunks of a scan; streams are cut into `chunk_bytes` decompressed bytes.

    chunks     number of chunks of each source; None for streams of unknown length
    files      most files of a source: two where there are pairs
    index      size of the index of the signatures
    host_cost  host memory that a chunk in progress takes: for each byte, and besides
    """

    chunks: tuple[int | None, ...]
    files: int
    index: IndexSize
    host_cost: Cost

    def with_chunks(self, chunk_bytes: int, sources: Sequence[Source]) -> "ScanPlan":
        return replace(self, chunk_bytes=chunk_bytes, chunks=_count_chunks(sources, chunk_bytes))

    @property
    def host_bytes(self) -> int:
        """Most bytes that a process takes: the program, the signatures and the chunks in progress.

        Streams have blocks besides, read ahead and in line. Rows come on top until they are
        written.
        """
        chunk = self.host_cost.unit_bytes * self.chunk_bytes + self.host_cost.fixed_bytes
        blocks = 0
        if None in self.chunks:
            line = BLOCKS_AHEAD + LINE_PER_THREAD * self.process_chunks
            blocks = line * _block_bytes(self.chunk_bytes, self.files)
        return int(PROGRAM_BYTES + self.index.memory + self.process_chunks * chunk + blocks)


def plan_scan(
    sources: Sequence[Source],
    signatures: Signatures,
    capacity: Capacity,
    run: RunOptions,
    options: ScanOptions,
) -> ScanPlan:
    """Return the plan for the device with least memory.

    Raises TooLittleMemory where there is too little for the signatures.
    """
    budget = memory_budget(capacity, run)
    lengths = pattern_lengths(signatures, options)
    index = index_size(lengths, options, expected_bases(sources), capacity.gpu)
    unit_bytes = DEVICE_BYTES_PER_BYTE + (ERROR_BYTES_PER_BYTE if options.has_errors else 0)
    unit_bytes *= CIRCLE_BASES if options.circular else 1
    fixed = FIXED_DEVICE_BYTES * capacity.gpu
    cost = Cost(unit_bytes, fixed + index.memory, LANE_DEVICE_BYTES * capacity.gpu)
    if cost.fixed_bytes > budget and index.memory > FIXED_DEVICE_BYTES:
        raise TooLittleMemory(
            f"{describe_index(signatures, index.memory)}, and {fixed:,} are needed"
            f" besides, where {budget:,} may be used: free some, give a larger"
            f" {option('memory_fraction')},"
            " or scan with a part of the signatures at a time"
        )
    best = _best_chunk_bytes(sources, capacity)
    chunk_bytes, lanes = largest_chunk(sources, cost, capacity, run, default=best)
    return ScanPlan(
        chunk_bytes=chunk_bytes,
        chunks=_count_chunks(sources, chunk_bytes),
        files=max(len(source.files) for source in sources),
        budget=budget,
        cost=cost,
        lanes=lanes,
        process_chunks=capacity.chunks_in_process,
        index=index,
        host_cost=_host_cost(sources, lengths, options),
    )


def _host_cost(sources: Sequence[Source], lengths: NDArray[np.int64], options: ScanOptions) -> Cost:
    """Return the host memory that a chunk in progress takes, with patterns of these lengths."""
    longest = longest_match(lengths, options)
    base_bytes = BASE_BYTES
    if options.has_errors or options.max_ambiguous is not None:
        base_bytes += COPY_BYTES
    if options.circular:
        base_bytes *= CIRCLE_BASES
    if options.needs_whole_records:
        base_bytes += COPY_BYTES
    bases = max(RECORD_FORMATS[source.layout].bases_per_byte for source in sources)
    copies = 1 + any(source.is_paired for source in sources)  # of each file, and of both
    unit_bytes = copies * TEXT_BYTES + base_bytes * bases
    # Records extend over the border by the longest match.
    fixed_bytes = BUFFER_SLACK * max(LAST_RECORD_BYTES, (TEXT_BYTES + base_bytes) * longest)
    if options.max_edits:
        edits = longest - int(lengths.max())
        fixed_bytes += ALIGNMENT_BYTES + MATCH_BYTES * longest + EDIT_BYTES * edits
    return Cost(BUFFER_SLACK * unit_bytes, int(fixed_bytes))


def _block_bytes(chunk_bytes: int, files: int) -> int:
    """Return the bytes of a block of a stream that is read from so many files in step."""
    return min(chunk_bytes, files * LARGEST_BLOCK)


def _best_chunk_bytes(sources: Sequence[Source], capacity: Capacity) -> int:
    """Return the bytes of a chunk with which a scan of much input is fastest."""
    if not capacity.gpu:
        are_pairs = any(source.is_paired for source in sources)
        return CHUNK_BYTES_OF_PAIRS if are_pairs else DEFAULT_CHUNK_BYTES
    if capacity.in_process and capacity.threads == capacity.lanes:
        return CHUNK_BYTES_ALONE
    dispatched = min(CHUNK_BYTES_DISPATCHED, LANE_BYTES_DISPATCHED // capacity.lanes)
    if not capacity.in_process:
        return dispatched
    return min(CHUNK_BYTES_SHARED, dispatched, PROCESS_BYTES_SHARED // capacity.threads)


def _count_chunks(sources: Sequence[Source], chunk_bytes: int) -> tuple[int | None, ...]:
    """Return the number of chunks of each source; None for a stream."""
    counts: list[int | None] = []
    for source in sources:
        size, piece = _cut(source, chunk_bytes)
        counts.append(-(-size // piece) if source.cuttable else None)
    return tuple(counts)


def _cut(source: Source, chunk_bytes: int) -> tuple[int, int]:
    """Return how many bytes of a plain source are cut, and every how many.

    Of a pair of files these are the bytes of the first: a chunk has as large a share of the other.
    """
    size = source.files[0].size or 0
    return size, max(1, chunk_bytes * size // (source.size or 1))


def scan_spans(
    sources: Sequence[Source],
    plan: ScanPlan,
    options: ScanOptions,
    *,
    after: ScanPart | None,
) -> Iterator[Span | Series[Span, ScanPart]]:
    """Yield the spans of all sources in order; streams are read as the spans are taken.

    after  the last part that is finished; None: none is
    """
    workers_read = streams_on_workers(sources)
    for number, source in enumerate(sources):
        first = 0
        if after is not None and number <= after.source:
            if number < after.source or after.ended:
                continue
            first = after.number + 1
        if source.cuttable:
            spans: Iterator[Span] = file_spans(number, *_cut(source, plan.chunk_bytes))
        elif source.has_ranges:
            spans = _bgzf_spans(number, source, plan)
        elif number in workers_read:
            blocks = stream_spans(number, first, min(plan.chunk_bytes, SERIES_BLOCK))
            yield Series(blocks, attrgetter("ended"), attrgetter("row_bytes"))
            continue
        else:
            block_bytes = _block_bytes(plan.chunk_bytes, len(source.files))
            spans = stream_blocks(number, source, block_bytes, options.phred_offset)
        yield from itertools.islice(spans, first, None)


def finished_span(
    sources: Sequence[Source], plan: ScanPlan, part: ScanPart, ranges: dict[int, Iterator[BgzfSpan]]
) -> Span:
    """Return a span with the records of a finished part, to read them again.

    ranges  spans of BGZF files after those of the parts before, by the number of the source
    """
    number, source = part.source, sources[part.source]
    if source.cuttable:
        span = FileSpan(number, part.number, 0, 0, exact=True, mate_start=part.mate_begin)
    elif source.has_ranges:
        spans = ranges.setdefault(number, _bgzf_spans(number, source, plan))
        span = next(each for each in spans if each.number == part.number)
    else:
        size = _block_bytes(plan.chunk_bytes, len(source.files))
        if number in streams_on_workers(sources):
            size = min(plan.chunk_bytes, SERIES_BLOCK)
        return StreamSpan(number, part.number, 0, size)
    begin, stop = (part.begin, part.stop) if part.begin >= 0 else (span.start, span.start)
    return replace(span, start=begin, stop=stop, exact=True)


def _bgzf_spans(number: int, source: Source, plan: ScanPlan) -> Iterator[BgzfSpan]:
    content_bytes = min(plan.chunk_bytes, SERIES_BLOCK)
    return bgzf_spans(number, source.path, source.size or 0, content_bytes)


def streams_on_workers(sources: Sequence[Source]) -> set[int]:
    """Return the numbers of the compressed files and URLs that workers open; of one alone none.

    It is read by a thread of this process, so that all threads and workers can search it.
    """
    found = {
        number
        for number, source in enumerate(sources)
        if source.is_stored and not source.has_ranges
    }
    return found if len(found) > 1 else set()


# ---- the index of the signatures ----------------------------------------------------------------


def expected_bases(sources: Sequence[Source]) -> float:
    """Return about how many bases are searched, where sizes are known."""
    sizes = [
        (source.size or 0) * FORMATS[source.layout].bases_per_byte
        for source in sources
        if source.cuttable
    ]
    return sum(sizes) if sizes else EXPECTED_BASES


def index_size(
    lengths: NDArray[np.int64], options: ScanOptions, bases: float, gpu: bool
) -> IndexSize:
    """Return the size of the index of patterns of these lengths; `bases` are searched."""
    size = size_of(lengths, GPU, bases, EXPECTED_N) if gpu else size_of(lengths, CPU, bases, 0.0)
    if options.has_errors:
        memory = PATTERN_BYTES * len(lengths) + STEP_BYTES * int(lengths.sum())
        return replace(size, entries=0, memory=memory)
    return size


def describe_index(signatures: Signatures, memory: int) -> str:
    """Return the memory that the signatures need, in words."""
    bases = len(signatures.letters.joined)
    return (
        f"{len(signatures):,} signatures of {bases:,} bases need {memory:,} bytes of memory with"
        " their index"
    )

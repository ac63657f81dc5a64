"""Hyperscan on the same task, as a process: literals in block mode, a sample a block.

    python rival_hyperscan.py SAMPLES.fastq SIGNATURES.fasta OUT.json --processes 16 --runs 5

writes JSON: seconds of compiling, seconds of each scan of all samples, and the hits. What makes it
fast here: the pure literal compiler; no start of match (the end and the length tell it); only the
first match of each pair (HS_FLAG_SINGLEMATCH); processes, because the wheel's `scan` keeps the
GIL; the database compiled before they are forked and its scratch space copied; samples handed out
a few at a time, so that all processes end together. Compiling, forking and reading files are not
counted.
"""

import argparse
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import data
import hyperscan

from multigpu.formats.sequences.signatures import read_signatures

BATCH = 4  # samples handed out at a time


class Rival:
    """Database and samples, which forked processes inherit."""

    database: Any
    samples: list[bytes]
    lengths: list[int]


def compile_literals(signatures: list[bytes]) -> float:
    begin = time.perf_counter()
    Rival.database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    Rival.database.compile(
        expressions=signatures,
        ids=list(range(len(signatures))),
        elements=len(signatures),
        flags=[hyperscan.HS_FLAG_SINGLEMATCH] * len(signatures),
        literal=True,
    )
    return time.perf_counter() - begin


def scan_batch(first: int) -> list[tuple[int, int, int]]:
    """Return (sample, signature, start) of every hit in some samples."""
    hits: list[tuple[int, int, int]] = []
    for sample in range(first, min(first + BATCH, len(Rival.samples))):

        def found(signature: int, _: int, end: int, *__: Any, sample: int = sample) -> None:
            hits.append((sample, signature, end - Rival.lengths[signature]))

        Rival.database.scan(Rival.samples[sample], match_event_handler=found)
    return hits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("samples", type=Path)
    parser.add_argument("signatures", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    signatures = [
        letters.tobytes() for letters in read_signatures([str(options.signatures)]).letters
    ]
    samples = data.letters_of(options.samples)
    Rival.samples = [samples.record(i).tobytes() for i in range(len(samples))]
    Rival.lengths = [len(signature) for signature in signatures]
    compiling = compile_literals(signatures)
    seconds, hits = scan_all(options.processes, options.runs)
    result = {
        "compile_seconds": compiling,
        "seconds": seconds,
        "hits": hits,
    }
    options.target.write_text(json.dumps(result))


def scan_all(processes: int, runs: int) -> tuple[list[float], list[tuple[int, int, int]]]:
    """Return the seconds of each run after one that is not counted, and the hits in order."""
    batches = range(0, len(Rival.samples), BATCH)
    seconds = []
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for _ in range(runs + 1):
            begin = time.perf_counter()
            each = pool.map(scan_batch, batches, chunksize=1)
            seconds.append(time.perf_counter() - begin)
    return seconds[1:], sorted(hit for hits in each for hit in hits)


if __name__ == "__main__":
    main()

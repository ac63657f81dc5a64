"""Places with mismatches and bulges of signatures, by the plain search on both strands."""

from itertools import groupby
from typing import NamedTuple

import numpy as np

from multigpu.kernels.bases import encode, reverse_complement
from multigpu.kernels.scan.approximate import reference
from multigpu.kernels.scan.approximate.bulges import BulgeRules
from multigpu.kernels.scan.types import allowed_bases
from support.scan_cases import array


class Place(NamedTuple):
    record: int
    signature: int
    start: int
    end: int
    strand: str
    mismatches: int
    bulge: int
    cigar: str


def places_of(
    records: list[str], signatures: list[str], rules: BulgeRules, strict: bool, strands: str = "+-"
) -> list[Place]:
    """Return all places by record, signature, start, end and strand."""
    found = []
    for r, record in enumerate(records):
        for s, signature in enumerate(signatures):
            sets = encode(array(signature))
            most = int(allowed_bases(rules.most, np.array([len(signature)]))[0])
            for strand in strands:
                sample = encode(array(record))
                sample = sample if strand == "+" else reverse_complement(sample)
                for place in reference.bulge_hits(
                    sample, sets, most, rules.prefix, rules.suffix, strict, rules.dna, rules.rna
                ):
                    start, end, operations = place.start, place.end, place.operations
                    if strand == "-":
                        start, end = len(record) - end, len(record) - start
                        operations = operations[::-1]
                    bulge = end - start - len(signature)
                    runs = "".join(f"{len(list(run))}{each}" for each, run in groupby(operations))
                    found.append(Place(r, s, start, end, strand, place.errors, bulge, runs))
    return sorted(found)


def chosen(wanted: str, places: list[Place], exact_suffix: bool) -> list[Place]:
    """Return the wanted places by the words of the documents."""

    def group(place: Place) -> tuple[object, ...]:
        if wanted != "sites":
            return (place.record, place.signature)
        is_end = (place.strand == "+") == exact_suffix
        return (*place[:2], place.strand, place.end if is_end else place.start)

    def rank(place: Place) -> tuple[object, ...]:
        size, is_rna = abs(place.bulge), place.bulge < 0
        return {
            "first": (place.start, size, place.mismatches, place.strand, is_rna),
            "best": (size, place.mismatches, place.start, place.strand, is_rna),
            "sites": (size, place.mismatches, is_rna),
        }[wanted]

    if wanted == "all":
        return places
    groups = groupby(sorted(places, key=group), key=group)
    return sorted(min(each, key=rank) for _, each in groups)

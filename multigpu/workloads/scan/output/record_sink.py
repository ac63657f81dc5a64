"""The records themselves, by what was found in them: --matched and --unmatched.

A path of files of records is a template, in which {file}, {signature} and others stand for names.

A name becomes a part of a path with all but letters, digits and some signs as %XX, as in URLs. So
different names stay different, and none leaves the folder, is hidden, or is one of `RESERVED`.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise, product
from math import prod
from pathlib import Path, PurePath
from string import Formatter

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import STDOUT, check_output
from multigpu.errors import UsageError, option
from multigpu.formats.alignments.unaligned_bam import ReadGroup, fastq_to_bam
from multigpu.formats.names import file_name
from multigpu.formats.sequences.registry import FORMATS, SEQUENCES
from multigpu.formats.sequences.sample_sheets import SampleSheet
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.storage.input_paths import suffix_of
from multigpu.formats.storage.many_outputs import atomic_outputs
from multigpu.formats.storage.suffixes import FOREIGN, uncompressed_suffix
from multigpu.kernels.compiled.destinations import Destinations, Numbering, place_records
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.options import PairRule, ScanOutput, Trim, existing_name
from multigpu.workloads.scan.output.row_sink import Write
from multigpu.workloads.scan.parts import ExtractedRecords
from multigpu.workloads.scan.sink import Findings

Numbers = NDArray[np.int64]

FIELDS = ("file", "sample", "signature", "mate")
TIED, UNKNOWN = RESERVED = ("tied", "unknown")
MOST_BYTES = 255  # of the name of a file
HELD_BYTES = 128 << 20  # of records, before they are written


def escape(name: bytes) -> str:
    """Return a name as a part of a path, which is none of `RESERVED`."""
    text = file_name(name)
    return f"%{ord(text[0]):02X}{text[1:]}" if text in RESERVED else text


def bare_name(path: str) -> str:
    """Return a sample file's name without its folder and the suffixes of format and compression."""
    name = PurePath(path.partition("?")[0] if "://" in path else path).name
    suffix = suffix_of(name, SEQUENCES)
    return name[: name.lower().rindex(suffix)] if suffix else name


def name_of_file(path: str) -> str:
    """Return the bare name of a sample file as a part of a path."""
    return escape(os.fsencode(bare_name(path)))


@dataclass(frozen=True)
class RecordPaths:
    """The files that a template stands for, one for each combination of its fields' values.

    option    that the template is the value of
    template  path, with fields of `FIELDS` in braces; "{{" stands for a brace
    values    of each field, as they stand in paths

    Raises UsageError for a template that is no path with fields that have values.
    """

    option: str
    template: str
    values: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        for name in self.fields:
            if name not in FIELDS:
                known = ", ".join(f"{{{each}}}" for each in FIELDS)
                raise self._error(f"{{{name}}} is unknown; there are {known}, and {{{{ for a brace")
            if name not in self.values:
                needs = {"sample": "a sample sheet", "mate": "pairs of reads"}[name]
                raise self._error(f"{{{name}}} needs {needs}")

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields in the template."""
        return tuple(dict.fromkeys(name for _, name in self._parts if name is not None))

    @cached_property
    def _parts(self) -> list[tuple[str, str | None]]:
        """The template as text and the field after it; None after the last."""
        try:
            parts = list(Formatter().parse(self.template))
        except ValueError as error:
            raise self._error(f"{error}; {{{{ stands for a brace") from None
        if wrong := next((f"{name}{'!' if x else ':'}" for _, name, y, x in parts if y or x), ""):
            raise self._error(f"{{{wrong}…}} is unknown: there is nothing to say how a name looks")
        return [(text, name) for text, name, _, _ in parts]

    def __len__(self) -> int:
        return prod(len(self.values[name]) for name in self.fields)

    @property
    def title(self) -> str:
        """A path for all of the files, in the folder where they or their folders are made."""
        return existing_name(self.template)

    def numbering(self, first: int, source: int) -> Numbering:
        """Return the numbers of the files of records of an input file, after `first` others."""
        steps, step = dict.fromkeys(FIELDS, 0), 1
        for name in reversed(self.fields):
            steps[name], step = step, step * len(self.values[name])
        label = steps["sample"] + steps["signature"]
        return Numbering(first + source * steps["file"], label, steps["file"], steps["mate"])

    def names(self, number: int) -> dict[str, str]:
        """Return the names in the path of a file, by their fields."""
        sizes = [len(self.values[name]) for name in self.fields]
        which = np.unravel_index(number, sizes) if sizes else ()
        return {name: self.values[name][int(i)] for name, i in zip(self.fields, which, strict=True)}

    def paths(self) -> list[str]:
        """Return all files, by their numbers. Raises UsageError where two have one path."""
        chosen = product(*(self.values[name] for name in self.fields))
        paths = [
            self.template.format_map(dict(zip(self.fields, names, strict=True))) for names in chosen
        ]
        if len(set(paths)) < len(paths):
            (path, _), *_ = Counter(paths).most_common(1)
            raise self._error(f"different records would go to one file, {path}")
        return paths

    def check(self, others: Iterable[str]) -> None:
        """Raise UsageError for paths that cannot be written, or that are among others.

        others  inputs and other outputs
        """
        if self.template in STDOUT:
            raise self._error("records go to files, not to standard output")
        check_output(self.title)
        kept = {os.path.realpath(path) for path in others}
        for path in self.paths():
            if os.path.realpath(path) in kept:
                raise self._error(f"a run would replace {path}, which is named twice")
            if os.path.lexists(path) and not os.path.isfile(path):  # noqa: PTH113
                raise self._error(f"{path} is there, and no regular file")
            if max(map(len, os.fsencode(path).split(b"/"))) > MOST_BYTES:
                raise self._error(f"{path} has a name of more than {MOST_BYTES} bytes")

    def _error(self, problem: str) -> UsageError:
        return UsageError(f"{option(self.option)} {self.template}: {problem}")


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordSink:
    """An output that is files of records: each goes once to every path that its rows give.

    matched    files of records with a match, if they are asked for
    unmatched  files of the others, if they are asked for; their numbers follow
    labels     int64[signatures + 1]  index of each signature's name in the paths, and of the name
               for those that are equally good
    trim       what of the records is cut off with a match
    mask       whether N is written over matches
    pair_rule  whether a pair goes where any of its mates goes, or only where both do
    are_pairs  whether all records are of pairs
    barcodes   of samples, by their names in paths
    """

    matched: RecordPaths | None
    unmatched: RecordPaths | None
    labels: NDArray[np.int64]
    trim: Trim | None
    mask: bool
    pair_rule: PairRule
    are_pairs: bool
    barcodes: Mapping[str, str]

    needs = frozenset[str]()

    @property
    def name(self) -> str:
        """The templates, and what is done to the records."""
        paths = [each.template for each in (self.matched, self.unmatched) if each]
        rules = f"trim {self.trim}, mask {self.mask}, pairs {self.pair_rule}"
        return "+".join(["records", *paths, rules])

    @property
    def paths(self) -> list[str]:
        """All files."""
        return [path for each in (self.matched, self.unmatched) if each for path in each.paths()]

    def collect(self, found: Findings) -> ExtractedRecords:
        assert found.texts is not None
        goes = self._place(found)
        counts = np.diff(goes.ends, prepend=0)
        files = np.flatnonzero(counts)
        kept, masked = np.empty((0, 2), np.int64), np.empty((0, 3), np.int64)
        if self.trim:
            kept = self._kept(found, goes)
        if self.mask:
            rows, row = found.rows, np.flatnonzero(goes.places >= 0)
            masked = np.column_stack([goes.places[row], rows.start[row], rows.end[row]])
        return ExtractedRecords(
            files=files,
            borders=np.append(0, goes.ends[files]),
            records=goes.records,
            kept=kept,
            masked=masked,
        ).read(found.texts)

    def _place(self, found: Findings) -> Destinations:
        """Return where the records go."""
        rows, none = found.rows, Numbering()
        matched = self.matched.numbering(0, found.source) if self.matched else none
        border = len(self.matched or ())
        unmatched = self.unmatched.numbering(border, found.source) if self.unmatched else none
        return place_records(
            rows.sample_index,
            rows.signature,
            rows.tied,
            self.labels if matched.name else np.zeros_like(self.labels),
            len(found.lengths),
            mates=2 if found.is_paired else 1,
            files=found.files,
            both=found.is_paired and self.pair_rule == "both",
            matched=matched,
            unmatched=unmatched,
            total=border + len(self.unmatched or ()),
        )

    def _kept(self, found: Findings, goes: Destinations) -> Numbers:
        """Return int64[k, 2]: the bases of each record that no match cuts off."""
        rows, row, lengths = found.rows, np.flatnonzero(goes.places >= 0), found.lengths
        kept = np.column_stack([np.zeros(len(goes.records), np.int64), lengths[goes.records]])
        start, end, length = rows.start[row], rows.end[row], rows.sample_length[row]
        is_begin = np.full(len(row), self.trim == "before")
        if self.trim == "nearer":
            is_begin = start <= length - end
        place = goes.places[row]
        np.maximum.at(kept[:, 0], place[is_begin], end[is_begin])
        np.minimum.at(kept[:, 1], place[~is_begin], start[~is_begin])
        kept[:, 1] = np.maximum(kept[:, 1], kept[:, 0])
        return kept

    @contextmanager
    def open(self, files: ExitStack) -> Iterator[Write[ExtractedRecords]]:
        """Yield the function that writes."""
        written, borders = [], [0]
        for paths in filter(None, (self.matched, self.unmatched)):
            convert = partial(self._to_bam, paths) if is_bam(paths.template) else None
            outputs = atomic_outputs(paths.title, paths.paths(), convert)
            written.append(files.enter_context(outputs))
            borders.append(borders[-1] + len(paths))

        held = 0

        def write(records: ExtractedRecords, _: int) -> None:
            nonlocal held
            held += records.nbytes
            pieces = list(records.pieces())
            for output, (first, last) in zip(written, pairwise(borders), strict=True):
                output.hold([(n - first, text) for n, text in pieces if first <= n < last])
            if held >= HELD_BYTES:
                held = 0
                for output in written:
                    output.write()

        yield write
        for output in written:
            output.finish()

    def _to_bam(self, paths: RecordPaths, number: int, path: Path) -> None:
        names = paths.names(number)
        name = names.get("sample") or names.get("signature") or PurePath(paths.template).stem
        group = ReadGroup(name, self.barcodes.get(name, ""))
        fastq_to_bam(path, group, are_pairs=self.are_pairs and "mate" not in names)


def record_sink(job: ScanJob, out: ScanOutput) -> RecordSink:
    """Return the output of records. Raises UsageError for paths that a run cannot write."""
    names = list(dict.fromkeys(map(escape, job.signatures.names)))
    index = {name: at for at, name in enumerate(names)}
    labels = np.array([*(index[escape(n)] for n in job.signatures.names), len(names)], np.int64)
    found = (*names, TIED) if job.options.are_top else names
    files = tuple(map(name_of_file, job.paths))
    values = {"file": files}
    are_pairs = all(source.is_paired for source in job.sources)
    if are_pairs:
        values["mate"] = ("1", "2")
    # With a sample sheet its samples are the signatures.
    named = ("signature", "sample") if job.sheet else ("signature",)
    matched, unmatched = (
        RecordPaths(name, template, {**values, **dict.fromkeys(named, labelled)})
        if template
        else None
        for name, template, labelled in (
            ("matched", out.matched, found),
            ("unmatched", out.unmatched, (UNKNOWN,)),
        )
    )
    if job.options.circular and (out.trim or out.mask):
        changed = option("trim" if out.trim else "mask")
        raise UsageError(f"{option('circular')} does not go with {changed}")
    _check_layouts({source.layout for source in job.sources}, out)
    others = [*job.paths, *(source.path for source, _ in job.signatures.files)]
    others += filter(None, (job.options.sample_sheet, out.output, *out.others))
    others += job.options.index_files
    for paths in filter(None, (matched, unmatched)):
        if "file" in paths.fields and len(set(files)) < len(files):
            (name, _), *_ = Counter(files).most_common(1)
            same = [path for path, each in zip(job.paths, files, strict=True) if each == name]
            raise UsageError(
                f"{option(paths.option)} {paths.template}: {{file}} is {name} for"
                f" {same[0]} and for {same[1]}: rename one, or scan them one after the other"
            )
        paths.check(others)
        others += paths.paths()
    return RecordSink(
        matched=matched,
        unmatched=unmatched,
        labels=labels,
        trim=out.trim,
        mask=out.mask,
        pair_rule=out.pair_rule,
        are_pairs=are_pairs,
        barcodes=_barcodes(job.sheet) if job.sheet else {},
    )


def _barcodes(sheet: SampleSheet) -> dict[str, str]:
    """Return the barcodes of samples by their names in paths, with - between two."""
    texts = [b"-".join(barcodes).decode() for barcodes in zip(*sheet.barcodes, strict=True)]
    return dict(zip(map(escape, sheet.samples), texts, strict=True))


def is_bam(template: str) -> bool:
    """Whether records go to BAM files."""
    return template.lower().endswith(".bam")


def _check_layouts(layouts: set[str], out: ScanOutput) -> None:
    """Raise UsageError where records cannot stand in files with these suffixes."""
    if len(layouts) > 1:
        raise UsageError(
            f"{option('matched')} and {option('unmatched')} take FASTQ or FASTA samples, not both:"
            " scan them one after the other"
        )
    (layout,) = layouts
    if layout not in ("fastq", "fasta"):
        raise UsageError(
            f"{option('matched')} and {option('unmatched')} take FASTQ and FASTA: `samtools fastq`"
            f" makes FASTQ of {layout.upper()} samples"
        )
    for path in out.templates:
        if layout == "fastq" and is_bam(path):
            continue
        suffix = uncompressed_suffix(path)
        if compression_of(path) == "zstd" or suffix in FOREIGN.difference(FORMATS[layout].suffixes):
            raise UsageError(
                f"{path}: the records are {layout.upper()}, and written as they are: choose a name"
                f" in {', '.join(FORMATS[layout].suffixes)}, with .gz after it to compress,"
                " or for FASTQ in .bam"
            )

"""Mistakes in counts tables as text, and other files that are given instead of one."""

import re
import shlex
from collections.abc import Sequence

from multigpu.errors import InputError, option, quoted

WHOLE, NUMBER = "whole number below 2^40", "number"  # what a column has: a place, or a count

# What Arrow says where one thread reads.
MISFIT = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error [^:]*: (.*)", re.DOTALL
)
MISCOUNT = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")

PLACE = ("chrom", "start", "end")  # the first columns
SAM = ("@HD\t", "@SQ\t", "@RG\t", "@PG\t", "@CO\t")  # how its header begins
SEPARATORS = {",": "commas", ";": "semicolons", " ": "spaces"}
CNVKIT = (
    "is a file of CNVkit, with ratios or a reference: give the BAM or CRAM files of all samples"
    f" and {option('regions')} TARGETS.bed, or their .targetcoverage.cnn"
)


def identify(path: str, header: str) -> str:
    """Return what a file is that is no counts table, by its first line, and what helps."""
    columns = header.lstrip("#").rstrip("\r\n").split("\t")
    if tuple(columns[:3]) == PLACE and "\r" in header.rstrip():
        made = f"{shlex.quote(path)} | tr -s '\\n' > {shlex.quote(path)}.tsv"
        return f"its lines end with carriage returns: tr '\\r' '\\n' < {made}"
    if columns[:3] == ["chromosome", "start", "end"] and {"log2", "depth"} & {*columns}:
        return CNVKIT
    for sign, name in SEPARATORS.items():
        fields = [field.strip("\"' ") for field in columns[0].split(sign)]
        if tuple(filter(None, fields))[:3] == PLACE:
            return f"its columns are separated by {name}, not by tabs: {_with_tabs(path, sign)}"
    return ""


def advise_on_sam(path: str) -> str:
    """Return what is wrong with a SAM file, and what helps."""
    made = shlex.quote(re.sub(r"(\.sam)?(\.gz)?$", ".bam", path, count=1))
    return f"is a SAM file, which is not read: samtools sort -o {made} {shlex.quote(path)}"


def _with_tabs(path: str, sign: str) -> str:
    """Return the command that makes a table of a file with other separators."""
    source, made = shlex.quote(path), shlex.quote(re.sub(r"(\.\w+)?$", ".tsv", path, count=1))
    squeezed = "-s " if sign == " " else ""
    return f"tr -d '\"' < {source} | tr {squeezed}'{sign}' '\\t' > {made}"


def translate(path: str, columns: Sequence[str], said: str) -> InputError:
    """Return an error of Arrow in our words."""
    if found := MISFIT.fullmatch(said):
        column, row, misfit = found.groups()
        where = f"row {row}, column {columns[int(column)]}"
        value = misfit.removeprefix("invalid value '").removesuffix("'")
        what = WHOLE if int(column) < 3 else NUMBER
        problem = "is not UTF-8" if column == "0" else f"{quoted(value)} is no {what}"
        return InputError(path, problem, where)
    if found := MISCOUNT.match(said):
        row, wanted, there = found.groups()
        return InputError(path, f"{there} columns instead of {wanted}", f"row {row}")
    return InputError(path, said.splitlines()[0])

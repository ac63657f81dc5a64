"""`multigpu simulate`: generated data to try the program and to measure it."""

from functools import reduce
from pathlib import Path
from typing import Any

import click

from multigpu.cluster.files import atomic_output, check_output, is_replaced
from multigpu.formats.storage.compressed import compressed_output
from multigpu.formats.tables.counts_files import write_counts
from multigpu.run.command import Decorator, Typed, file_option, keep_inputs
from multigpu.run.values import Size
from multigpu.workloads.cnv.simulate import CohortDesign, simulate_cohort
from multigpu.workloads.dock import simulate as simulate_docking
from multigpu.workloads.scan import simulate

BASES = Typed(Size(unit="bases"))


@click.group("simulate")
def command() -> None:
    """Generate sequences, counts, ligands and a pocket; the same seed gives the same bytes.

    The defaults of the first two are the classical course data (600 MB). What its generators call

    \b
        gen_sig 1000 3000 10000 0.1
        gen_sample sig.fasta 2000 20 1 2 100000 200000 10 30 0.1

    is here

    \b
        multigpu simulate signatures --count 1000 --min-length 3000 \\
            --max-length 10000 --n-ratio 0.1 -o sig.fasta
        multigpu simulate samples --signatures sig.fasta --clean 2000 \\
            --infected 20 --min-signatures 1 --max-signatures 2 \\
            --min-length 100000 --max-length 200000 --min-phred 10 \\
            --max-phred 30 --n-ratio 0.1 -o samples.fastq
    """  # noqa: D301 - \b is a character that click wants


def _number(name: str, default: float, text: str, kind: Any = None) -> Decorator:
    """Return an option, of the type of its default unless another one is given."""
    return click.option(name, type=kind, default=default, show_default=True, help=text)


def _note_replaced(_: click.Context, __: click.Parameter, path: str | None) -> str | None:
    """Return the output, and print a note where the file is there."""
    if path and is_replaced(path) and Path(path).exists():
        click.echo(f"multigpu: note: {path} is there, and is replaced", err=True)
    return path


SEED = _number("--seed", 1, "Seed of the random numbers: another one gives other data.")


def _output(*names: str, text: str) -> Decorator:
    return file_option(*names, text=text, callback=_note_replaced)


OUTPUT = _output("-o", "--output", text="Output file; standard output without it.")


def _common(shortest: int, longest: int) -> Decorator:
    """Return the options of both generators of sequences, with these default lengths in bases."""
    lengths = (
        _number("--min-length", shortest, "Minimum length in bases.", BASES),
        _number("--max-length", longest, "Maximum length in bases.", BASES),
    )
    common = (*lengths, _number("--n-ratio", 0.1, "Share of Ns, 0 to 1."), SEED, OUTPUT)
    return lambda function: reduce(lambda made, add: add(made), reversed(common), function)


@command.command("signatures")
@_number("--count", 1000, "Number of signatures.")
@_common(3000, 10_000)
def _signatures(output: str | None, **quantities: Any) -> None:
    """Random signatures sig0, sig1, … as FASTA."""
    with compressed_output(output) as out:
        simulate.signatures(out, **quantities)


@command.command("samples")
@file_option(
    "--signatures",
    "source",
    text="Signatures to plant in the samples.",
    metavar="FASTA",
    required=True,
)
@_number("--clean", 2000, "Number of samples without a signature.")
@_number("--infected", 20, "Number of samples with signatures.")
@_number("--min-signatures", 1, "Minimum number of different signatures in an infected sample.")
@_number("--max-signatures", 2, "Maximum number of different signatures in an infected sample.")
@_number("--min-phred", 10, "Minimum quality, 0 to 93.")
@_number("--max-phred", 30, "Maximum quality, 0 to 93.")
@click.option("--fasta", is_flag=True, help="Write FASTA, without qualities.")
@_common(100_000, 200_000)
def _samples(source: str, output: str | None, **quantities: Any) -> None:
    """Random samples smp0, smp1, … as FASTQ, clean and infected ones shuffled."""
    from multigpu.formats.sequences.signatures import read_signatures

    signatures = list(read_signatures([source]).letters)
    with compressed_output(output) as out:
        simulate.samples(out, signatures, **quantities)


@command.command("ligands")
@_number("--count", 1000, "Number of ligands.")
@_number("--min-atoms", 20, "Minimum number of atoms.")
@_number("--max-atoms", 40, "Maximum number of atoms.")
@SEED
@OUTPUT
def _ligands(output: str | None, **quantities: int) -> None:
    """Random ligands lig0, lig1, … around the origin as SDF."""
    with compressed_output(output) as out:
        simulate_docking.ligands(out, **quantities)


@command.command("pocket")
@_number("--points", 60, "Number of points along each axis.")
@_number("--spacing", 0.375, "Distance between points in Å.")
@_number("--wells", 40, "Number of places where atoms score.")
@SEED
@OUTPUT
def _pocket(output: str | None, **quantities: Any) -> None:
    """A random pocket around the origin as .npz."""
    with atomic_output(output) as out:
        simulate_docking.pocket(out, **quantities)


@command.command("counts")
@_number("--regions", 100_000, "Number of regions, the rows of the table.")
@_number("--samples", 15, "Number of samples, the columns of the table.")
@_number("--chromosomes", 22, "Number of chromosomes, of about equal length.")
@_number("--coverage", 80.0, "Mean number of reads in a region with two copies.")
@_number("--dispersion", 0.005, "Variance beyond Poisson's: mean + this x mean^2.")
@_number("--cnvs", 100, "Number of planted variants.")
@_number("--min-length", 5, "Minimum number of regions of a variant.")
@_number("--max-length", 60, "Maximum number of regions of a variant.")
@_number("--max-carriers", 3, "Maximum number of samples that share a variant.")
@_number("--width", 25_000, "Width of a region in bases.")
@SEED
@_output("--truth", text="Write what was planted, as TSV.")
@_output("-o", "--output", text="Parquet or TSV by its suffix; standard output without it.")
def _counts(output: str | None, truth: str | None, **quantities: Any) -> None:
    """Read counts of a cohort, a table as `multigpu count` writes it."""
    for path in (output, truth):
        check_output(path)
    keep_inputs([], output, truth)
    counts, planted = simulate_cohort(CohortDesign(**quantities))
    write_counts(output, counts)
    if truth:
        with compressed_output(truth) as out:
            out.write("".join(planted.lines(counts)).encode())

"""`multigpu simulate`: generated data to try the program and to measure it."""

from dataclasses import asdict, dataclass
from pathlib import Path

import click

from multigpu.cluster.files import atomic_output, check_output, is_replaced
from multigpu.errors import UsageError
from multigpu.formats.storage.compressed import compressed_output, compression_of
from multigpu.formats.storage.suffixes import check_suffix, check_table
from multigpu.formats.tables.counts_files import write_counts
from multigpu.run.command import command_of, keep_inputs
from multigpu.run.declarations import Options, declare
from multigpu.run.values import Bases, TextPath
from multigpu.workloads.cnv.simulate import CohortDesign, simulate_cohort
from multigpu.workloads.dock import simulate as simulate_docking
from multigpu.workloads.scan import simulate
from multigpu.workloads.scan.options import FASTA

FASTQ = (".fq", ".fastq")


@dataclass(frozen=True, kw_only=True)
class DataOutput(Options, group="Output"):
    """File of the data, on the command line; a note is printed where it is there."""

    output: TextPath | None = declare(None, "Output file; standard output without it.", short="o")

    def check(self) -> None:
        super().check()
        for path in asdict(self).values():
            if path and is_replaced(path) and Path(path).exists():
                click.echo(f"multigpu: note: {path} is there, and is replaced", err=True)


@dataclass(frozen=True, kw_only=True)
class CountsOutput(DataOutput, group="Output"):
    """Files of counts, on the command line."""

    truth: TextPath | None = declare(None, "Write what was planted, as TSV.")
    output: TextPath | None = declare(
        None, "Parquet or TSV by its suffix; standard output without it.", short="o"
    )


@dataclass(frozen=True, kw_only=True)
class Seed(Options, group="Data"):
    """Seed of all data, and what is common to them."""

    seed: int = declare(1, "Seed of the random numbers: another one gives other data.", at_least=0)


@dataclass(frozen=True, kw_only=True)
class SignatureDesign(Seed, group="Data"):
    """Signatures to generate."""

    count: int = declare(1000, "Number of signatures.", at_least=0)
    min_length: Bases = declare(3000, "Minimum length in bases.", at_least=1)
    max_length: Bases = declare(10_000, "Maximum length in bases.")
    n_ratio: float = declare(0.1, "Share of Ns, 0 to 1.", at_least=0, at_most=1)


@dataclass(frozen=True, kw_only=True)
class SampleDesign(Seed, group="Data"):
    """Samples to generate."""

    signatures: TextPath = declare(
        "", "Signatures to plant in the samples.", "FASTA", required=True, default=""
    )
    clean: int = declare(2000, "Number of samples without a signature.", at_least=0)
    infected: int = declare(20, "Number of samples with signatures.", at_least=0)
    min_signatures: int = declare(
        1, "Minimum number of different signatures in an infected sample.", at_least=0
    )
    max_signatures: int = declare(
        2, "Maximum number of different signatures in an infected sample."
    )
    min_phred: int = declare(10, "Minimum quality, 0 to 93.", at_least=0)
    max_phred: int = declare(30, "Maximum quality, 0 to 93.", at_most=93)
    fasta: bool = declare(False, "Write FASTA, without qualities.")
    min_length: Bases = declare(100_000, "Minimum length in bases.", at_least=1)
    max_length: Bases = declare(200_000, "Maximum length in bases.")
    n_ratio: float = declare(0.1, "Share of Ns, 0 to 1.", at_least=0, at_most=1)


@dataclass(frozen=True, kw_only=True)
class LigandDesign(Seed, group="Data"):
    """Ligands to generate."""

    count: int = declare(1000, "Number of ligands.")
    min_atoms: int = declare(20, "Minimum number of atoms.")
    max_atoms: int = declare(40, "Maximum number of atoms.")


@dataclass(frozen=True, kw_only=True)
class PocketDesign(Seed, group="Data"):
    """A pocket to generate."""

    points: int = declare(60, "Number of points along each axis.")
    spacing: float = declare(0.375, "Distance between points in Å.")
    wells: int = declare(40, "Number of places where atoms score.")


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


@command_of(example="multigpu simulate signatures --count 40 -o signatures.fasta")
def signatures(design: SignatureDesign, out: DataOutput) -> None:
    """Random signatures sig0, sig1, … as FASTA."""
    check_suffix(out.output, *FASTA)
    with compressed_output(out.output) as file:
        simulate.signatures(file, **asdict(design))


@command_of(example="multigpu simulate samples --signatures signatures.fasta -o samples.fastq")
def samples(design: SampleDesign, out: DataOutput) -> None:
    """Random samples smp0, smp1, … as FASTQ, clean and infected ones shuffled."""
    from multigpu.formats.sequences.signatures import read_signatures

    check_suffix(out.output, *(FASTA if design.fasta else FASTQ))
    keep_inputs([design.signatures], out.output)
    quantities = asdict(design)
    letters = list(read_signatures([quantities.pop("signatures")]).letters)
    with compressed_output(out.output) as file:
        simulate.samples(file, letters, **quantities)


@command_of(example="multigpu simulate ligands --count 100 -o ligands.sdf")
def ligands(design: LigandDesign, out: DataOutput) -> None:
    """Random ligands lig0, lig1, … around the origin as SDF."""
    check_suffix(out.output, ".sdf")
    with compressed_output(out.output) as file:
        simulate_docking.ligands(file, **asdict(design))


@command_of(example="multigpu simulate pocket -o pocket.npz")
def pocket(design: PocketDesign, out: DataOutput) -> None:
    """A random pocket around the origin as .npz."""
    check_suffix(out.output, ".npz")
    if compression_of(out.output) != "none":
        raise UsageError(f"{out.output}: a pocket is not compressed: choose a name in .npz")
    with atomic_output(out.output) as file:
        simulate_docking.pocket(file, **asdict(design))


@command_of(example="multigpu simulate counts --regions 20000 -o counts.parquet")
def counts(design: CohortDesign, out: CountsOutput) -> None:
    """Read counts of a cohort, a table as `multigpu count` writes it."""
    for path in (out.output, out.truth):
        check_output(path)
    check_table(out.output)
    check_suffix(out.truth, ".tsv")
    keep_inputs([], out.output, out.truth)
    made, planted = simulate_cohort(design)
    write_counts(out.output, made)
    if out.truth:
        with compressed_output(out.truth) as file:
            file.write("".join(planted.lines(made)).encode())


for each in (signatures, samples, ligands, pocket, counts):
    command.add_command(each)

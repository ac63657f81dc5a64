"""`multigpu demo`: every kind of job once, on small generated data."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from multigpu.cli import cli
from multigpu.cluster.files import failures_named, scratch_folder
from multigpu.errors import UsageError
from multigpu.run.command import FILE, compilation_reported

STEPS = """
simulate signatures --count 40 --min-length 300 --max-length 1000 -o {}/signatures.fasta
simulate samples --signatures {}/signatures.fasta --clean 40 --infected 20 \
    --min-length 20000 --max-length 60000 -o {}/samples.fastq
scan {}/samples.fastq -s {}/signatures.fasta -o {}/matches.tsv
simulate counts --regions 20000 --coverage 400 --cnvs 30 -o {}/counts.parquet
cnv {}/counts.parquet -o {}/calls
simulate ligands --count 100 -o {}/ligands.sdf
simulate pocket -o {}/pocket.npz
dock {}/ligands.sdf --pocket {}/pocket.npz -o {}/poses.sdf --report {}/poses.html
"""  # {} is the folder
SMALLER = {  # with which the steps need the same functions; of samples only all of them are cut
    "counts": "--regions 400 --cnvs 3 --chromosomes 2",
    "ligands": "--count 3",
}
NEXT = """
    multigpu scan {}/samples.fastq -s {}/signatures.fasta --min-score 20 | head
    multigpu cnv {}/counts.parquet -o more-calls --prior-impact 10
    multigpu dock {}/ligands.sdf --pocket {}/pocket.npz -o more-poses.sdf --precision 5"""


@click.command()
@click.option(
    "-o", "--output", type=FILE, metavar="DIR", default="multigpu-demo", show_default=True,
    help="Folder for the generated data and the results.",
)  # fmt: skip
@click.option(
    "--gpus", default="auto", show_default=True, metavar="WHICH",
    help="GPUs to use, as in multigpu scan.",
)  # fmt: skip
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def command(output: str, gpus: str, debug: bool) -> None:
    """Run scan, cnv and dock on small generated data; print each command and what it found.

    The first run compiles what these commands need, before the first one: up to a minute.
    """
    with failures_named(output, UsageError):
        Path(output).mkdir(parents=True, exist_ok=True)
    with scratch_folder() as scratch, compilation_reported():
        for words in _steps(str(scratch), gpus):
            more = SMALLER.get(words[1], "").split() if words[0] == "simulate" else ["--quiet"]
            cli.main([*words, *more], prog_name="multigpu", standalone_mode=False)
    for words in _steps(output, gpus):
        click.echo(f"$ multigpu {shlex.join(words)}", err=True)
        cli.main(words, prog_name="multigpu", standalone_mode=False)
    tables = ("matches.tsv", "calls/cnvs.tsv", "poses.scores.tsv")
    matches, cnvs, ligands = (_rows(Path(output, name)) for name in tables)
    click.echo(
        f"Found {matches} matches (in {output}/matches.tsv), {cnvs} copy-number variants"
        f" ({output}/calls/report.html) and the best poses of {ligands} ligands"
        f" ({output}/poses.html)."
    )
    activate = Path(os.path.relpath(sys.prefix), "bin", "activate")
    if shutil.which("multigpu") is None and activate.exists():
        click.echo(f"So that this shell finds the program:\n\n    source {activate}\n")
    click.echo(
        f"Commands to try next, or with files of your own:\n{NEXT.replace('{}', output)}\n\n"
        "multigpu COMMAND --help lists all options."
    )


def _steps(folder: str, gpus: str) -> Iterator[list[str]]:
    for step in STEPS.strip().splitlines():
        words = [word.replace("{}", folder) for word in step.split()]
        yield words if words[0] == "simulate" or gpus == "auto" else [*words, "--gpus", gpus]


def _rows(table: Path) -> int:
    with table.open() as lines:
        return sum(1 for _ in lines) - 1

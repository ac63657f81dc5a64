"""`multigpu doctor`: what a run would use on this machine, what is wrong and the cure."""

import click

from multigpu.run.command import answer

BROKEN = 1  # exit status when something that is here does not work


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
@click.option(
    "--kernel-check/--no-kernel-check",
    default=True,
    show_default=True,
    help="Compile and run a tiny kernel on every GPU.",
)
@click.option(
    "--gpus", default="auto", show_default=True, metavar="WHICH",
    help="GPUs to look at, as in multigpu scan.",
)  # fmt: skip
def command(as_json: bool, kernel_check: bool, gpus: str) -> None:
    """Print what a run would use here, what is wrong and how to cure it.

    The exit status is 1 when something that is present does not work, and 0 otherwise, also
    where there is no GPU.
    """
    from multigpu.tools import examination

    report = examination.examine(kernel_check, gpus)
    answer([examination.as_json(report)] if as_json else examination.as_page(report))
    if report.broken:
        click.get_current_context().exit(BROKEN)

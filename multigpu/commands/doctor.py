"""`multigpu doctor`: what a run would use on this machine, what is wrong and the cure."""

from collections.abc import Iterator

import click

from multigpu import doctor
from multigpu.commands.answers import answer

BROKEN = 1  # exit status when something that is here does not work


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
@click.option(
    "--kernel-check/--no-kernel-check",
    default=True,
    show_default=True,
    help="Compile and run a tiny kernel on every GPU.",
)
def command(as_json: bool, kernel_check: bool) -> None:
    """Tell what a run would use here, what is wrong and how to cure it.

    The exit status is 1 when something that is present does not work, and 0 otherwise, also
    where there is no GPU.
    """
    report = doctor.examine(kernel_check)
    answer([doctor.as_json(report)] if as_json else _page(report))
    if report.broken:
        raise SystemExit(BROKEN)


def _page(report: doctor.Report) -> Iterator[str]:
    for label, text in doctor.as_lines(report):
        yield f"{label:<12} {text}"
    for finding in report.findings:
        label = click.style("problem", fg="red") if finding.broken else "note   "
        yield f"{label}      {finding.text}"
        yield f"  cure       {finding.cure}"
    yield click.style(report.verdict, bold=True)

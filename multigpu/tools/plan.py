"""`multigpu plan COMMAND …`, another way to write `multigpu COMMAND --dry-run …`."""

import click


@click.command(options_metavar="COMMAND …")
@click.pass_context
def command(context: click.Context) -> None:
    """Show how a job would be cut into chunks: `multigpu scan --dry-run` and its like.

    COMMAND is scan, cnv, count or dock, with its options.
    """
    click.echo(context.get_help())

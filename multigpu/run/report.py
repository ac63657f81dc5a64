"""Names and values as reports and their figures show them."""

from html import escape

from multigpu.errors import printable

TEMPLATE = "%{"  # begins a value in what is shown under the mouse


def shown(value: object) -> object:
    """Return what a page shows of a value: of plain texts what is printable."""
    return printable(value) if type(value) is str else value


def literal(name: str) -> str:
    """Return `name` so that plotly shows it letter by letter: it knows tags and templates."""
    return escape(printable(name), quote=False).replace(TEMPLATE, "%&#123;")

"""Names in figures that plotly draws, which takes some markup for its own."""

TEMPLATE = "%{"  # begins a value in what is shown under the mouse


def literal(name: str) -> str:
    """`name` as figures show it letter by letter: they know tags, entities and templates."""
    text = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace(TEMPLATE, "%&#123;")

"""Names that could become markup, and pages as a browser reads them."""

import re
from html.parser import HTMLParser

NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}",
    "&amp;",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    "' onmouseover='alert(3)",
    "%{x}<b>bold</b>",
    "$\\frac$",
)
CONTROLS = "\x1b[2J\x07\x9b\u202e"  # what moves a cursor, rings, or turns a line round
LARGE = 1 << 20  # characters: a script that is plotly


class Page(HTMLParser):
    """Elements, attributes, scripts and text of a page, as a browser reads it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._in_script = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data
        else:
            self.text += data


def read(page: str, scripts: int) -> Page:
    """Read a page; require that nothing in it runs but our own scripts."""
    found = Page(page)
    assert len(found.scripts) == scripts
    assert "img" not in found.tags
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert not [value for _, value in found.attributes if "alert" in value]
    for script in found.scripts:
        if len(script) < LARGE:
            assert not re.search(r"</|<!--|<script|<img", script, re.IGNORECASE)
    return found

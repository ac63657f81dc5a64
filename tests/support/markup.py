"""Names that could become markup, and reports as a browser reads them."""

import json
import re
from html.parser import HTMLParser
from typing import Any

NAMES = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "&amp;",
    "</script><script>alert(2)</script>", "<!--<script>", "' onmouseover='alert(3)",
    "%{x}<b>bold</b>", "$\\frac$",
)  # fmt: skip
CONTROLS = "\x1b[2J\x07\x9b\u202e"  # what moves a cursor, rings, or turns a line round
ESCAPED = r"\x1b[2J\x07\x9b\u202e"


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

    @property
    def figures(self) -> list[dict[str, Any]]:
        """The figures of a report, in their order."""
        return [*json.loads(self.scripts[1]).values()]

    @property
    def scenes(self) -> list[list[dict[str, Any]]]:
        """Scenes of its viewers, in their order."""
        return [*json.loads(self.scripts[4]).values()]


def read(page: bytes) -> Page:
    """Read a report; require that it is whole, asks for nothing, and runs our own scripts alone."""
    found = Page(page.decode())
    plotly, figures, script, *viewing = found.scripts
    if viewing:
        viewer, scenes, space = viewing
        assert viewer.startswith("/*! 3Dmol.js")
        assert "Redistributions in binary form" in viewer  # the licence
        figures, script = figures + scenes, script + space
    assert plotly.lstrip("/* \n").startswith("plotly.js")
    assert script.lstrip().startswith('"use strict"')
    assert "img" not in found.tags
    assert {name for name, _ in found.attributes}.isdisjoint({"src", "onerror", "onmouseover"})
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert not [value for _, value in found.attributes if "alert" in value]
    assert not re.search(r"</|<!--|<script|<img", figures + script, re.IGNORECASE)
    assert not set(found.text + figures).intersection(CONTROLS[0] + CONTROLS[4:])
    return found

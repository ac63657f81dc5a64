"""The page of a report: one file that opens without a network."""

import platform
import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from markupsafe import Markup

from multigpu import __version__
from multigpu.citation import PROGRAM
from multigpu.errors import printable
from multigpu.report.figures import Figure, Scene, as_script, script_json
from multigpu.run.summary import versions

Facts = Sequence[tuple[str, str]]  # names with values
CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")  # name and password in a URL


class Provenance(NamedTuple):
    """Origin of the contents of a page: the command, the time, versions of packages."""

    command: str
    date: str
    versions: str

    @classmethod
    def of_this_run(cls) -> "Provenance":
        """Return that of the program that runs, which ends now."""
        packages = {"Python": platform.python_version(), **versions()}
        return cls(
            command=shlex.join(["multigpu", *sys.argv[1:]]),
            date=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            versions=", ".join(f"{name} {version}" for name, version in packages.items()),
        )


class Card(NamedTuple):
    """One of the main numbers, and what is to be known of it."""

    name: str
    value: str
    note: str = ""


class Column(NamedTuple):
    """A column of a table. unit: with the direction that is better, if one is."""

    name: str
    unit: str = ""
    is_number: bool = False


class Table(NamedTuple):
    """A table that can be sorted, searched and saved. name: of its file, without a suffix."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page, with what it has in the order of the fields.

    figures  of several one is shown at a time, chosen by its title
    is_half  whether the next section has room beside it, on a wide screen
    """

    title: str
    text: str = ""
    items: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    scene: Scene = ()
    table: Table | None = None
    facts: Facts = ()
    is_half: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A report.

    method      what was done
    inputs      files
    settings    what else was given
    provenance  None: neither command nor date, so the page depends on its contents alone
    references  to cite besides the program
    """

    title: str
    method: str
    inputs: Sequence[str]
    cards: Sequence[Card]
    sections: Sequence[Section]
    settings: Facts = ()
    provenance: Provenance | None = None
    references: Sequence[str] = ()

    def html(self) -> bytes:
        """Return the page. Whatever markup is in names and texts, they are shown as they are."""
        from jinja2 import Environment, PackageLoader

        loader = PackageLoader("multigpu.report", "")
        environment = Environment(
            loader=loader, autoescape=True, finalize=_shown, trim_blocks=True, lstrip_blocks=True
        )
        sections = list(enumerate(self.sections))
        figures = {
            f"figure{i}-{k}": figure for i, x in sections for k, figure in enumerate(x.figures)
        }
        scenes = {
            f"scene{i}": [each.as_json() for each in section.scene]
            for i, section in sections
            if section.scene
        }
        text: str = environment.get_template("page.html.j2").render(
            page=self,
            program=f"multigpu {__version__}",
            citations=[" ".join(each.split()) for each in (PROGRAM, *self.references)],
            style=_script("multigpu.report", "page.css"),
            script=_script("multigpu.report", "page.js"),
            plotly=_script("plotly", "package_data/plotly.min.js"),
            figures=Markup(as_script(figures)),
            viewer=_script("multigpu.report", "3Dmol-min.js") if scenes else "",
            scenes=Markup(script_json(scenes)),
            space=_script("multigpu.report", "space.js"),
        )
        return text.encode("utf-8", "replace")


def _script(package: str, name: str) -> Markup:
    return Markup(files(package).joinpath(name).read_text(encoding="utf-8"))


def _shown(value: object) -> object:
    """Return what a page shows of a value: of texts what is printable, without credentials."""
    return CREDENTIALS.sub("…", printable(value)) if type(value) is str else value

"""The page docs/options.md, made from the declarations: `python -m multigpu.tools.reference`."""

import sys
from collections.abc import Iterator
from textwrap import fill
from typing import Any

from multigpu.cli import WORKLOADS, cli
from multigpu.errors import options_spelled, spelled
from multigpu.run.command import GROUPS
from multigpu.run.declarations import Option, flag
from multigpu.run.values import SWITCH

WIDTH = 118
HEADER = """\
# Options

Made from their declarations by `make reference`; a test compares it. An option of the command line
is the keyword of the Python function with the same name and underscores, unless an entry says
otherwise."""


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield HEADER
    for name, purpose in WORKLOADS.items():
        command: Any = cli.get_command(None, name)
        yield from _section(name, purpose, command)
        for part, inner in getattr(command, "commands", {}).items():
            yield from _section(f"{name} {part}", inner.get_short_help_str(WIDTH), inner)


def _section(name: str, purpose: str, command: Any) -> Iterator[str]:
    yield f"\n## multigpu {name}\n\n{purpose}"
    for group in GROUPS:
        found = [each for each in getattr(command, "declared", ()) if each.group == group]
        if found:
            yield f"\n{group}:\n"
            yield from map(_entry, found)


def _entry(each: Option) -> str:
    name = flag(each.name)
    shown = f"{name} {each.metavar}"
    if each.argument:
        shown = each.metavar or each.name.upper()
    elif each.kind is SWITCH:
        shown = name if each.value is False else f"{name}/{flag(each.name, on=False)}"
    short = f"-{each.short}, " if each.short else ""
    in_python = f" In Python `{each.name}`." if each.flag else ""
    text = f"* `{short}{shown}`: {spelled(each.description)}{in_python}"
    return fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


if __name__ == "__main__":
    with options_spelled(flag):
        sys.stdout.write("\n".join(page()) + "\n")

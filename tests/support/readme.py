"""The commands of a Markdown page, run one after the other, and what they print."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = "```"
PROMPT = "$ "
END = "END"
HERE = f"<<'{END}'"
MARK = "\x1e"  # parts the outputs of commands from each other


@dataclass(frozen=True)
class Command:
    """A command of the page. line: the number of its last line, from 1; shown: those below it."""

    line: int
    text: str
    shown: tuple[str, ...]


def commands(page: str) -> Iterator[Command]:
    """Yield the commands in fenced blocks: lines that begin with `$ `, and what follows each.

    A command with `<<'END'` goes on to the line END, one that ends with a backslash to the next.
    """
    inside, here, found, shown, at = False, False, "", [], 0
    for number, line in enumerate(page.splitlines(), 1):
        if here or (not shown and found.endswith("\\")):
            here = line != END if here else line.endswith(HERE)
            found, at = f"{found}\n{line}", number
            continue
        if inside and not line.startswith((FENCE, PROMPT)):
            shown.append(line)
            continue
        if found:
            yield Command(at, found, tuple(shown))
        found, shown, at = "", [], number
        if line.startswith(FENCE):
            inside = not inside
        elif inside:
            found = line.removeprefix(PROMPT)
            here = found.endswith(HERE)


def printed(
    wanted: list[Command], folder: Path, seconds: float, errors: int = subprocess.DEVNULL
) -> list[list[str]]:
    """Run all commands in one shell in `folder`; return the lines that each printed.

    errors: descriptor of the file that takes their standard error
    """
    script = "".join(f"{command.text}\nprintf '\\x1e'\n" for command in wanted)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = subprocess.Popen(
        ["bash"], cwd=folder, env={**os.environ, "PATH": path, "CUDA_VISIBLE_DEVICES": ""},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(f"{script}\nexit\n".encode())
        shell.stdin.close()
        out = _read(shell.stdout.fileno(), len(wanted), seconds)
    finally:
        os.killpg(shell.pid, signal.SIGTERM)  # what still runs in the background, too
        shell.wait()
        if shell.stdout is not None:
            shell.stdout.close()
    return [text.splitlines() for text in out.split(MARK)[: len(wanted)]]


def _read(file: int, marks: int, seconds: float) -> str:
    """Return what comes until all commands have ended; some go on in the background."""
    got, deadline = b"", time.monotonic() + seconds
    while got.count(MARK.encode()) < marks:
        if not select.select([file], [], [], max(0, deadline - time.monotonic()))[0]:
            raise TimeoutError(got.decode(errors="replace")[-500:])
        new = os.read(file, 1 << 16)
        if not new:
            break
        got += new
    return got.decode()

"""Output of compilers for tests, kept for all processes of a run and for the next run.

    path = built("emulated", ".so", texts, make)    # make(path) writes it where it is not yet

It is found by all that it was made of; `make clean` removes it, as do four weeks without use.
"""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 4 * 7 * 24 * 3600  # after which what nobody used is removed


def built(kind: str, suffix: str, texts: Iterable[str], make: Callable[[Path], None]) -> Path:
    """The file that `make` writes. texts: all that it depends on, the compiler included."""
    name = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]
    path = _folder(kind) / f"{name}{suffix}"
    if path.exists():
        os.utime(path)
    else:
        unfinished = path.with_name(f"{name}.{os.getpid()}{suffix}")
        try:
            make(unfinished)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


@cache
def _folder(kind: str) -> Path:
    """Beside pytest's own cache; where that cannot be written, for this process only."""
    folder = ROOT / ".pytest_cache" / kind
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        return Path(tempfile.mkdtemp(prefix=f"multigpu-{kind}-"))
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another process does the same
            if path.stat().st_mtime < time.time() - SECONDS:
                path.unlink()
    return folder

"""Output of compilers, kept for all processes of a run of tests and for the next run.

    path = built("emulated", ".so", texts, make)    # make(path) writes it where it is not yet

The name of a file is a digest of everything it was made from. `make clean` removes it, as do four
weeks without use.
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
    """Return the file that `make` writes. texts: everything it depends on, the compiler too."""
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
    """Return a folder beside pytest's cache; a temporary one where that cannot be written."""
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

"""Which kernels these are."""

import hashlib
import sys
from functools import cache
from pathlib import Path

KERNELS = Path(__file__).parents[1]
SUFFIXES = (".py", ".cu", ".cuh")
# Named by every module outside that has functions compiled.
COMPILER = b"multigpu.kernels.compiled.jit"


@cache
def digest() -> str:
    """A hash of all files of the kernels: two machines with the same one compute the same."""
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(KERNELS.rglob("*")):
        if path.suffix in SUFFIXES:
            found.update(path.read_bytes())
    return found.hexdigest()


@cache
def digest_with(package: str) -> str:
    """A hash of the kernels and of all modules of a loaded package that have functions compiled.

    These inline each other and the kernels.
    """
    found = hashlib.blake2b(digest().encode(), digest_size=8)
    for folder in getattr(sys.modules.get(package), "__path__", ()):
        for path in sorted(Path(folder).rglob("*.py")):
            text = path.read_bytes()
            if COMPILER in text:
                found.update(text)
    return found.hexdigest()

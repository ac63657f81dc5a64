"""Which kernels these are."""

import hashlib
from functools import cache
from pathlib import Path

SUFFIXES = (".py", ".cu", ".cuh")


@cache
def digest() -> str:
    """A hash of all files of the kernels: two machines with the same one compute the same."""
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in SUFFIXES:
            found.update(path.read_bytes())
    return found.hexdigest()

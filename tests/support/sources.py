"""Modules of the source, each once."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("multigpu", "kernels", "cluster")


def modules(*folders: str) -> Iterator[Path]:
    """Yield the modules of folders, which are those of the source unless they are named."""
    for folder in folders or FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                yield path

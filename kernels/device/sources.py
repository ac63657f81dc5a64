"""The CUDA sources as one text each, for compilers that have only the text."""

import re
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'#include "(.+)"\n')


def source(kernel: str, name: str) -> str:
    """Return a file of a kernel's folder with its includes put in place, each once.

    Includes are relative to the file that has them, as in C.
    """
    seen: set[Path] = set()

    def expanded(path: Path) -> str:
        if path in seen:
            return ""
        seen.add(path)
        return INCLUDE.sub(
            lambda include: expanded((path.parent / include[1]).resolve()), path.read_text()
        )

    return expanded(KERNELS / kernel / name)

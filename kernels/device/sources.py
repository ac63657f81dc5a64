"""The CUDA sources as one text each, for compilers that have only the text."""

import re
from pathlib import Path

INCLUDE = re.compile(r'#include "(.+)"\n')


def source(kernel: str, name: str) -> str:
    """A file of a kernel's folder with its includes put in place, each once."""
    seen: set[str] = set()

    def expanded(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        text = (Path(__file__).parents[1] / kernel / name).read_text()
        return INCLUDE.sub(lambda include: expanded(include[1]), text)

    return expanded(name)

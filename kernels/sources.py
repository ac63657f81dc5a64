"""CUDA sources as one text each, for compilers that have only the text."""

import re
from pathlib import Path

INCLUDE = re.compile(r'#include "(.+)"\n')


def source(path: Path) -> str:
    """A file with its includes put in place, each once; they lie in its folder."""
    seen: set[str] = set()

    def expanded(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        text = path.with_name(name).read_text(encoding="utf-8")
        return INCLUDE.sub(lambda include: expanded(include[1]), text)

    return expanded(path.name)

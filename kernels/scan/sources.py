"""The CUDA sources of this folder."""

from pathlib import Path

from kernels import sources


def source(name: str) -> str:
    """A file of this folder with its includes put in place, each once."""
    return sources.source(Path(__file__).with_name(name))

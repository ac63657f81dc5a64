"""Zstandard: Python's own from 3.14 on, before that the package with the same interface."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["zstd"]

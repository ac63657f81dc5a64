"""What tests of files share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.counted import refused, some

__all__ = ["refused", "some", "store"]


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., str]:
    """Writes bytes as a file, `reads` unless it is named, and tells its path."""

    def write(data: bytes, name: str = "reads") -> str:
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return write

"""What tests of counting share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.counted import refused, some

__all__ = ["refused", "some"]


@pytest.fixture
def bed(tmp_path: Path) -> Callable[..., str]:
    def write(*rows: tuple[str, int, int]) -> str:
        path = tmp_path / "regions.bed"
        path.write_text("".join(f"{name}\t{start}\t{end}\n" for name, start, end in rows))
        return str(path)

    return write

"""Damage in .npz files that raises errors of other libraries."""

import io
import zipfile

import numpy as np
import pytest

from multigpu.formats.storage.npy import read_arrays


@pytest.mark.parametrize("kind", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, 93], ids=str)
def test_read_arrays__of_an_entry_that_claims_another_compression(kind: int) -> None:
    """93 is Zstandard, which Python reads from 3.14 on."""
    file = io.BytesIO()
    np.savez_compressed(file, counts=np.arange(1000))
    content = bytearray(file.getvalue())
    for place in (content.index(b"PK\1\2") + 10, content.index(b"PK\3\4") + 8):
        content[place] = kind
    with pytest.raises(ValueError, match=r"compressed as no \.npz file is"):
        read_arrays(bytes(content), "counts")

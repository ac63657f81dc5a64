"""Tracks of segmentation: their offsets, and the borders of their segments."""

from typing import Any

import numpy as np

from multigpu.kernels.segmentation.types import SegmentedTracks


def tracks(*lengths: int) -> Any:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def borders(segments: SegmentedTracks) -> list[tuple[int, int, int]]:
    columns = (segments.track.tolist(), segments.start.tolist(), segments.end.tolist())
    return list(zip(*columns, strict=True))

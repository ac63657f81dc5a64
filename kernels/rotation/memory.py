"""How much device memory the search takes. Needs no CuPy: plans are made where none may be."""

from kernels.rotation.types import Field

MOST_SCORES = 1 << 26  # that are held at a time, for each thread that calls


def fixed_bytes(field: Field) -> int:
    """What a `cuda.Searcher` takes for a field, while it is made: the nodes, and cells of four."""
    nodes = field.values.nbytes
    if field.interpolation == "nearest":
        return nodes
    return nodes + 4 * (nodes // field.shape[0]) * (field.shape[0] + 1)


def working_bytes() -> int:
    """What each thread takes in `cuda.Searcher.best` at most, but for its ligands."""
    return 4 * MOST_SCORES + MOST_SCORES // 64  # scores, and winners: 16 bytes for up to 2,048

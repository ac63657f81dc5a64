"""Maps of a receptor: the energy of a probe atom at every point of a grid box.

`compute_maps` gives AutoGrid 4's; `cpu.py` and `cuda.py` compute the same bytes. Vina's are made on
a CPU, by `vina.py`.
"""

from collections.abc import Sequence

from multigpu.kernels.maps.types import GridBox, Maps, Receptor

__all__ = ["GridBox", "Maps", "Receptor", "compute_maps"]


def compute_maps(
    receptor: Receptor, box: GridBox, types: Sequence[str], device: int | None = None
) -> Maps:
    """Return AutoGrid 4's maps: of each AutoDock type, of electrostatics "e", of desolvation "d".

    Each is float32[box.shape], in kcal/mol: of an atom of the type without its charge, for a charge
    of 1 e, and for a charge of |1 e|; rounded to three decimals, as AutoGrid writes them.

    device: a CUDA device by number; None: one core of this machine. The bytes are the same.

    Raises ValueError for a type that AutoDock 4.1's force field lacks; it names the atom.
    """
    if device is None:
        from multigpu.kernels.maps import cpu

        return cpu.compute_maps(receptor, box, types)
    import cupy

    from multigpu.kernels.maps import cuda

    with cupy.cuda.Device(device):
        return cuda.compute_maps(receptor, box, types)

"""Score grids of pockets: AutoGrid, OpenDX, MRC/CCP4 and NumPy files to arrays.

All end as value [ix, iy, iz] at origin + spacing * (ix, iy, iz), in Å. Axes that are not those of
the coordinates, and grids with values that are no numbers, are refused.

A format is one module that ends with its `PocketFormat`, and one line in `registry`.
"""

from multigpu.formats.molecules.pockets.pocket import Pocket, Vector
from multigpu.formats.molecules.pockets.registry import POCKETS, read_pocket

__all__ = ["POCKETS", "Pocket", "Vector", "read_pocket"]

"""Read counts: how many reads of alignment files begin in which regions.

Call the package: `multigpu.count(...)` is the function `multigpu.count.api.count`.
"""

from multigpu.callable_package import make_callable

__all__ = ["count"]

make_callable(__name__)

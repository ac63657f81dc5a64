"""Known sequences in reads and genomes: which signatures occur where in which samples.

Call the package: `multigpu.scan(...)` is the function `multigpu.scan.api.scan`.
"""

from multigpu.callable_package import make_callable

__all__ = ["scan"]

make_callable(__name__)

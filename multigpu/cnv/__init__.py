"""Copy-number variants from read counts, by the cn.MOPS pipeline.

Call the package: `multigpu.cnv(...)` is the function `multigpu.cnv.api.cnv`.
"""

from multigpu.callable_package import make_callable

__all__ = ["cnv"]

make_callable(__name__)

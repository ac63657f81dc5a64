// The search. Compiled for a stride (STRIDE), for the first or all hits (FIRST), and for the
// meaning of ambiguous bases in samples (STRICT: they must be subsets of the pattern's bases).

#include "index.cuh"
#include "probe.cuh"
#include "direct.cuh"
#include "sweep.cuh"
#include "collect.cuh"

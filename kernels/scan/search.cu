// The exact search. Compiled for a stride (STRIDE), and as scan.cuh says.

#include "index.cuh"
#include "probe.cuh"
#include "direct.cuh"
#include "collect.cuh"

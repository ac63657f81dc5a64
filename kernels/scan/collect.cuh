// The table of hits, one of each record and signature, as a list.

#include "scan.cuh"

// Lists record, pattern, start and errors of all pairs; `collected` counts them.
extern "C" __global__ void collect(Hits hits, u32 strands, u32* collected) {
  if (*hits.full) return;  // the list would be too short
  for (u32 slot = blockIdx.x * blockDim.x + threadIdx.x; slot < hits.capacity;
       slot += gridDim.x * blockDim.x) {
    const u64 pair = hits.keys[slot];
    if (pair == EMPTY) continue;
    const u64 rank = hits.values[slot], place = place_of(rank);
    hits.list[atomicAdd(collected, 1)] = make_int4(int(pair >> 32),
                                                   int(u32(pair) * strands + place % strands),
                                                   int(place / strands), errors_of(rank));
  }
}

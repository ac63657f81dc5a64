// The results of a search for first hits, as a list.

#include "scan.cuh"

// The table's pairs as a list: record, pattern, start. `collected` counts them.
extern "C" __global__ void collect(Hits hits, u32 strands, u32* collected) {
  if (*hits.full) return;  // the list would be too short
  for (u32 slot = blockIdx.x * blockDim.x + threadIdx.x; slot < hits.capacity;
       slot += gridDim.x * blockDim.x) {
    const u64 pair = hits.keys[slot];
    if (pair == EMPTY) continue;
    const u64 value = hits.values[slot];
    const u32 place = atomicAdd(collected, 1);
    hits.list[place] = make_int4(int(pair >> 32), int(u32(pair) * strands + value % strands),
                                 int(value / strands), 0);
  }
}

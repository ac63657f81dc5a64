// The direct way for few positions: 32 of them, collected from anywhere, against every anchor.

#include "dense.cuh"

constexpr u32 ALONE = 8;  // words that a lane compares by itself before the warp takes the rest

// The lanes in `matching` agree with pattern p in the anchor's 32 bases; compares the rest.
__device__ void finish(const Samples& samples, const Patterns& patterns, const Hits& hits, u32 p,
                       int start, bool matching) {
  const u32 lane = threadIdx.x % WARP;
  const u32 words = (patterns.lengths[p] + 31) / 32;
  u32 record = 0;
  matching = matching && inside(samples, patterns, p, start, record);
  const u32 begin = matching ? u32(samples.offsets[record]) : 0;
  matching = matching && !beaten(hits, patterns, record, p, start - begin);
  for (u32 j = 0; matching && j < min(words, ALONE); ++j)
    matching = !word_differs(samples, patterns, p, start, j);
  for (u32 left = __ballot_sync(FULL, matching); left; left &= left - 1) {
    const u32 chosen = __ffs(left) - 1;  // the lowest first: in its record it beats the others
    const u32 its_start = __shfl_sync(FULL, u32(start), chosen);
    const u32 its_record = __shfl_sync(FULL, record, chosen);
    const u32 within = its_start - __shfl_sync(FULL, begin, chosen);
    if (__any_sync(FULL, lane == chosen && beaten(hits, patterns, record, p, within))) continue;
    bool differs = false;
    for (u32 j = ALONE; j < words; j += WARP) {
      if (j + lane < words) differs = word_differs(samples, patterns, p, its_start, j + lane);
      if (__any_sync(FULL, differs)) break;
    }
    if (!__any_sync(FULL, differs) && lane == chosen) keep(hits, patterns, its_record, p, within);
    __syncwarp();
  }
}

// 32 positions, one a lane (or ALL: none), against the anchors of `chosen`.
__device__ void compare(const Samples& samples, const Patterns& patterns, const Hits& hits,
                        const int* __restrict__ chosen, const uint4* __restrict__ anchor,
                        u32 n_padded, u32 position, u32 max_anchor) {
  bool active = position != ALL;
  if (FIRST && active) active = !settled(samples, patterns, hits, position, max_anchor);
  if (!__any_sync(FULL, active)) return;
  const uint4 s = active ? window(samples.planes, position) : make_uint4(0, 0, 0, 0);
  for (u32 i = 0; i < n_padded; i += 4) {
    u32 same = 0;
#pragma unroll
    for (u32 j = 0; j < 4; ++j) same |= u32(differ(s, __ldg(&anchor[i + j])) == 0) << j;
    if (!active) same = 0;
    if (!__any_sync(FULL, same)) continue;
    for (u32 j = 0; j < 4; ++j) {
      const bool matching = (same >> j) & 1;
      if (!__any_sync(FULL, matching)) continue;
      const u32 p = chosen[i + j];
      finish(samples, patterns, hits, p, int(position) - patterns.anchors[p], matching);
    }
  }
}

// A warp goes through 1,024 positions at a time, collects the wanted ones and compares 32 together.
extern "C" __global__ void __launch_bounds__(256)
    direct(Samples samples, Patterns patterns, Hits hits, const int* __restrict__ chosen,
           const uint4* __restrict__ anchor, u32 n_padded, u32 k, u32 blanks, u32 max_anchor) {
  __shared__ u32 queues[256 / WARP][2 * WARP];
  u32* queue = queues[threadIdx.x / WARP];
  const u32 lane = threadIdx.x % WARP;
  const u32 words = (samples.bases + 31) / 32;
  const u32 warps = gridDim.x * (blockDim.x / WARP);
  u32 waiting = 0;
  for (u32 tile = (blockIdx.x * blockDim.x + threadIdx.x) / WARP * WARP; tile < words;
       tile += warps * WARP) {
    const u32 word = tile + lane;
    const u32 wanted = word < words ? wanted_of(samples, word, k, blanks, false) : 0;
    if (__reduce_add_sync(FULL, __popc(wanted)) > SPARSE) continue;
    for (u32 left = __ballot_sync(FULL, wanted); left; left &= left - 1) {
      const u32 source = __ffs(left) - 1;
      const u32 bits = __shfl_sync(FULL, wanted, source);
      if ((bits >> lane) & 1)
        queue[waiting + __popc(bits & ((1u << lane) - 1))] = (tile + source) * 32 + lane;
      waiting += __popc(bits);
      __syncwarp();
      if (waiting < WARP) continue;
      compare(samples, patterns, hits, chosen, anchor, n_padded, queue[lane], max_anchor);
      waiting -= WARP;
      const u32 kept = queue[WARP + lane];
      __syncwarp();
      if (lane < waiting) queue[lane] = kept;
      __syncwarp();
    }
  }
  if (waiting)
    compare(samples, patterns, hits, chosen, anchor, n_padded, lane < waiting ? queue[lane] : ALL,
            max_anchor);
}

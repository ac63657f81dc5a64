// The direct way for positions that the index cannot answer for: 32 of them, collected from anywhere,
// against every anchor.

#include "probe.cuh"

constexpr u32 SPARSE = 384;  // positions of a tile; those of tiles with more are left to the sweep

// The positions of a word that only a window with more than `blanks` ambiguous bases could find.
// Behind the last whole window there is none.
__device__ u32 wanted_of(const Samples& samples, u32 word, u32 k, u32 blanks) {
  const i64 left = i64(samples.bases) - i64(word) * 32 - (k - 1);
  if (left <= 0) return 0;
  u32 ambiguous[3];
  for (u32 i = 0; i < 3; ++i) ambiguous[i] = ~single(samples.planes[word + i]);
  u32 wanted = 0;
#pragma unroll
  for (u32 at = 0; at < 32 + STRIDE; at += STRIDE) {  // finds the positions in (at - STRIDE, at]
    const u32 mask = at < 32 ? __funnelshift_r(ambiguous[0], ambiguous[1], at)
                             : __funnelshift_r(ambiguous[1], ambiguous[2], at - 32);
    if (__popc(mask & ((1u << k) - 1)) <= blanks) continue;
    const u64 before = at < STRIDE ? 0 : (2ull << (at - STRIDE)) - 1;
    wanted |= u32(((2ull << at) - 1) & ~before);
  }
  return left < 32 ? wanted & ((1u << left) - 1) : wanted;
}

// 32 positions, one a lane (or ALL: none), against all anchors, which come in fours.
__device__ void compare(const Samples& samples, const Patterns& patterns, const Hits& hits,
                        u32 position, u32 max_anchor) {
  bool active = position != ALL;
  if (FIRST && active) active = !settled(samples, patterns, hits, position, max_anchor);
  if (!__any_sync(FULL, active)) return;
  const uint4 s = active ? window(samples.planes, position) : make_uint4(0, 0, 0, 0);
  for (u32 i = 0; i < patterns.n; i += 4) {
    u32 same = 0;
#pragma unroll
    for (u32 j = 0; j < 4; ++j) same |= u32(differ(s, __ldg(&patterns.anchor[i + j])) == 0) << j;
    for (u32 left = active ? same : 0; left; left &= left - 1) {
      const u32 p = i + __ffs(left) - 1;
      compare_whole(samples, patterns, hits, p, int(position) - patterns.anchors[p]);
    }
  }
}

// A warp goes through a tile at a time, collects the wanted positions and compares 32 together.
extern "C" __global__ void __launch_bounds__(256)
    direct(Samples samples, Patterns patterns, Hits hits, u32 k, u32 blanks, u32 max_anchor,
           Crowded crowded) {
  __shared__ u32 queues[256 / WARP][2 * WARP];
  u32* queue = queues[threadIdx.x / WARP];
  const u32 lane = threadIdx.x % WARP;
  const u32 words = (samples.bases + 31) / 32;
  const u32 warps = gridDim.x * (blockDim.x / WARP);
  u32 waiting = 0;
  for (u32 tile = (blockIdx.x * blockDim.x + threadIdx.x) / WARP * WARP; tile < words;
       tile += warps * WARP) {
    const u32 word = tile + lane;
    const u32 wanted = word < words ? wanted_of(samples, word, k, blanks) : 0;
    if (__reduce_add_sync(FULL, __popc(wanted)) > SPARSE) {
      if (lane == 0) crowded.tiles[tile / WARP] = *crowded.any = 1;
      continue;
    }
    for (u32 left = __ballot_sync(FULL, wanted); left; left &= left - 1) {
      const u32 source = __ffs(left) - 1;
      const u32 bits = __shfl_sync(FULL, wanted, source);
      if ((bits >> lane) & 1)
        queue[waiting + __popc(bits & ((1u << lane) - 1))] = (tile + source) * 32 + lane;
      waiting += __popc(bits);
      __syncwarp();
      if (waiting < WARP) continue;
      compare(samples, patterns, hits, queue[lane], max_anchor);
      waiting -= WARP;
      const u32 kept = queue[WARP + lane];
      __syncwarp();
      if (lane < waiting) queue[lane] = kept;
      __syncwarp();
    }
  }
  if (waiting) compare(samples, patterns, hits, lane < waiting ? queue[lane] : ALL, max_anchor);
}

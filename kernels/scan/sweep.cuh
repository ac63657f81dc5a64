// The direct way for many positions: a warp holds 1,024 of them as bits, one word a lane, and
// strikes out those that differ from a pattern, one of the pattern's single bases after the other.

#include "dense.cuh"

// The positions that agree with the pattern's single bases.
__device__ u32 struck_by_steps(const u32* planes, const unsigned short* __restrict__ steps,
                               int count, u32 alive) {
  const uint2* four = reinterpret_cast<const uint2*>(steps);
  for (int s = 0; s < count && __any_sync(FULL, alive); s += 4) {
    const uint2 packed = __ldg(four++);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32 step = ((i < 2 ? packed.x : packed.y) >> (16 * (i & 1))) & 0xFFFF;
      const u32* held = planes + threadIdx.x % WARP + (step >> 5);
      alive &= __funnelshift_r(held[0], held[1], step & 31);
    }
  }
  return alive;
}

// The planes of a tile and of the words after it; ambiguous bases count only if they may match.
__device__ void hold(const Samples& samples, u32 tile, u32* planes) {
  const u32 words = (samples.bases + 31) / 32;
  for (u32 i = threadIdx.x % WARP; i < SWEEP_HELD; i += WARP) {
    uint4 word_planes = make_uint4(ALL, ALL, ALL, ALL);
    if (tile + i <= words) word_planes = samples.planes[tile + i];
    const u32 usable = STRICT ? single(word_planes) : ALL;
    planes[0 * SWEEP_HELD + i] = word_planes.x & usable;
    planes[1 * SWEEP_HELD + i] = word_planes.y & usable;
    planes[2 * SWEEP_HELD + i] = word_planes.z & usable;
    planes[3 * SWEEP_HELD + i] = word_planes.w & usable;
  }
}

// What is left after the steps is compared completely, the lowest position first.
__device__ void settle_survivors(const Samples& samples, const Patterns& patterns, const Hits& hits,
                                 u32 p, u32 tile, u32 alive) {
  const u32 lane = threadIdx.x % WARP;
  const u32 words = (patterns.lengths[p] + 31) / 32;
  const int anchor = patterns.anchors[p];
  const u32 first = (tile + lane) * 32;
  for (u32 lanes; (lanes = __ballot_sync(FULL, alive)) != 0;) {
    const u32 source = __ffs(lanes) - 1;
    const u32 position = (tile + source) * 32 + __ffs(__shfl_sync(FULL, alive, source)) - 1;
    const int start = int(position) - anchor;
    u64 struck = u64(position) + 1;  // everything below is done with
    u32 record;
    if (start < 0) {
      struck = anchor;
    } else if (!inside(samples, patterns, p, start, record)) {
      // It would reach over the record's end, and so would all that begin later in the record.
      struck = u32(start) < samples.limit ? samples.offsets[record_of(samples, start) + 1] + anchor
                                          : ~0ull;
    } else {
      const u32 within = start - samples.offsets[record];
      bool differs = false;
      const bool known = __any_sync(FULL, lane == 0 && beaten(hits, patterns, record, p, within));
      for (u32 j = 0; j < words && !known; j += WARP) {
        if (j + lane < words) differs = word_differs(samples, patterns, p, start, j + lane);
        if (__any_sync(FULL, differs)) break;
      }
      differs = __any_sync(FULL, differs);
      if (!known && !differs && lane == 0) keep(hits, patterns, record, p, within);
      if (FIRST && !differs) struck = samples.offsets[record + 1] + anchor;  // later is not first
      __syncwarp();
    }
    if (struck > first) alive = struck - first < 32 ? alive & (ALL << (struck - first)) : 0;
  }
}

// `every`: all positions, else those in tiles with more than SPARSE wanted ones. To find first hits
// early, the tiles where a record begins, up to the last place of an anchor of a hit at its start,
// are swept before the others (`heads`): where all matches, that is all that there is to do.
extern "C" __global__ void __launch_bounds__(256)
    sweep(Samples samples, Patterns patterns, Hits hits, const int* __restrict__ chosen,
          u32 n_chosen, const unsigned short* __restrict__ steps, const int* __restrict__ n_steps,
          u32 room, u32 k, u32 blanks, u32 every, u32 max_anchor, u32 heads) {
  __shared__ u32 shared_planes[256 / WARP][4 * SWEEP_HELD];
  u32* planes = shared_planes[threadIdx.x / WARP];
  const u32 lane = threadIdx.x % WARP;
  const u32 words = (samples.bases + 31) / 32;
  const u32 warps = gridDim.x * (blockDim.x / WARP);
  for (u32 tile = (blockIdx.x * blockDim.x + threadIdx.x) / WARP * WARP; tile < words;
       tile += warps * WARP) {
    // With a full table no record would ever be settled, and all is going to be done again.
    if (FIRST && __any_sync(FULL, *static_cast<volatile u32*>(hits.full))) return;
    const u32 word = tile + lane;
    const u32 wanted = word < words ? wanted_of(samples, word, k, blanks, every) : 0;
    if (!every && __reduce_add_sync(FULL, __popc(wanted)) <= SPARSE) continue;
    if (FIRST) {
      const u32 record = record_of(samples, tile * 32);
      const bool head = i64(tile) * 32 - samples.offsets[record] <= i64(max_anchor) ||
                        samples.offsets[record + 1] < u64(tile + WARP) * 32;
      if (head != bool(heads)) continue;
      if (!head && settled(samples, patterns, hits, tile * 32, max_anchor)) continue;
    }
    hold(samples, tile, planes);
    __syncwarp();
    for (u32 c = 0; c < n_chosen; ++c) {
      const u32 p = chosen[c];
      const u32 alive = struck_by_steps(planes, steps + size_t(p) * room, n_steps[p], wanted);
      if (__any_sync(FULL, alive)) settle_survivors(samples, patterns, hits, p, tile, alive);
    }
    __syncwarp();
  }
}

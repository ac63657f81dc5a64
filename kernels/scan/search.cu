// The exact search. Compiled for a stride (STRIDE), and as scan.cuh says.

#include "collect.cuh"

// ---- the index ----

// Where comparing begins: the first clean run of `run` bases with enough different neighbours, else
// the one with the most. Patterns without a run have a window that matches nothing.
extern "C" __global__ void place_anchors(Patterns patterns, u32 run, int* __restrict__ anchors,
                                         uint4* __restrict__ anchor) {
  const u32 p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= patterns.n) return;
  const uint4* planes = patterns.planes + patterns.words[p];
  const int enough = min(8, int(run) - 1);
  int best = -1, where = 0, clean = 0;
  u32 mask = 0;
  for (int i = 0; i < patterns.lengths[p] && best < enough; ++i) {
    if ((i & 31) == 0) mask = single(planes[i >> 5]);
    clean = (mask >> (i & 31)) & 1 ? clean + 1 : 0;
    if (clean < int(run)) continue;
    const uint4 seed = window(planes, i + 1 - run);
    const u32 low = seed.y | seed.w, high = seed.z | seed.w;
    u32 pairs = 0;
    for (u32 j = 0; j + 1 < run; ++j) pairs |= 1u << (((low >> j) & 3) | (((high >> j) & 3) << 2));
    if (__popc(pairs) > best) best = __popc(pairs), where = i + 1 - run;
  }
  anchors[p] = where;
  anchor[p] = best < 0 ? make_uint4(0, 0, 0, 0) : window(planes, where);
}

// One thread an entry.
extern "C" __global__ void fill_index(Patterns patterns, Index index) {
  const u32 total = index.n_seeded * STRIDE * index.n_masks;
  for (u32 e = blockIdx.x * blockDim.x + threadIdx.x; e < total; e += gridDim.x * blockDim.x) {
    const u32 mask = index.masks[e % index.n_masks];
    const u32 window = e / index.n_masks;
    const uint4 seed = patterns.anchor[index.seeded[window / STRIDE]];
    const u32 kept = ((1u << index.k) - 1) & ~mask;
    const u32 phase = window % STRIDE;
    const Hashed key =
        hashed({mask, ((seed.y | seed.w) >> phase) & kept, ((seed.z | seed.w) >> phase) & kept});
    u32* filter = mask ? index.blank : index.clean;
    const u32 bit = key.place >> (mask ? index.blank_shift : index.clean_shift);
    atomicOr(&filter[bit >> 5], 1u << (bit & 31));
    const int before = atomicExch(&index.heads[key.place >> index.bucket_shift], int(e));
    index.entries[e] = make_int2(key.tag, before);
  }
}

// ---- the indexed way: windows of the samples are looked up ----

// Keeps pattern p, which may begin at `start` (-1 and less: before the first base), if it matches.
__device__ void compare_whole(const Samples& samples, const Patterns& patterns, const Hits& hits,
                              u32 p, int start) {
  u32 record;
  if (!inside(samples, patterns, p, start, record)) return;
  const u32 within = start - int(samples.offsets[record]);
  if (never_kept(hits, patterns, record, p, within)) return;
  for (u32 j = 0; 32 * j < u32(patterns.lengths[p]); ++j)
    if (word_differs(samples, patterns, p, start, j)) return;
  keep_hit(hits, patterns, record, p, within, 0);
}

__device__ void follow(const Samples& samples, const Patterns& patterns, const Index& index,
                       const Hits& hits, Hashed key, u32 mask, u32 position) {
  for (int e = index.heads[key.place >> index.bucket_shift]; e != NOTHING;) {
    const int2 entry = index.entries[e];
    if (u32(entry.x) == key.tag && index.masks[u32(e) % index.n_masks] == mask) {
      const u32 window_of_seed = u32(e) / index.n_masks;
      const u32 p = index.seeded[window_of_seed / STRIDE];
      const int at = int(position) - int(window_of_seed % STRIDE);
      if (at >= 0 && !differ(window(samples.planes, at), patterns.anchor[p]))
        compare_whole(samples, patterns, hits, p, at - patterns.anchors[p]);
    }
    e = entry.y;
  }
}

// One thread looks up the windows of 32 positions, every STRIDE-th.
extern "C" __global__ void __launch_bounds__(256)
    probe(Samples samples, Patterns patterns, Index index, Hits hits) {
  const u32 k_bits = (1u << index.k) - 1;
  const u32 words = (samples.bases + 31) / 32;
  for (u32 word = blockIdx.x * blockDim.x + threadIdx.x; word < words;
       word += gridDim.x * blockDim.x) {
    const uint4 a = samples.planes[word], b = samples.planes[word + 1];
    const u32 low[2] = {a.y | a.w, b.y | b.w}, high[2] = {a.z | a.w, b.z | b.w};
    const u32 ambiguous[2] = {~single(a), ~single(b)};
    u32 candidates = 0;
#pragma unroll
    for (int i = 0; i < 32; i += STRIDE) {
      const u32 mask = __funnelshift_r(ambiguous[0], ambiguous[1], i) & k_bits;
      const u32 kept = k_bits & ~mask;
      const Hashed key = hashed({mask, __funnelshift_r(low[0], low[1], i) & kept,
                                 __funnelshift_r(high[0], high[1], i) & kept});
      u32 set = 0;
      if (!mask || (!STRICT && __popc(mask) <= index.blanks)) {
        const u32* filter = mask ? index.blank : index.clean;
        const u32 bit = key.place >> (mask ? index.blank_shift : index.clean_shift);
        set = (__ldg(&filter[bit >> 5]) >> (bit & 31)) & 1;
      }
      candidates |= set << i;
    }
    for (; candidates; candidates &= candidates - 1) {
      const u32 i = __ffs(candidates) - 1;
      const u32 mask = __funnelshift_r(ambiguous[0], ambiguous[1], i) & k_bits;
      const u32 kept = k_bits & ~mask;
      const Hashed key = hashed({mask, __funnelshift_r(low[0], low[1], i) & kept,
                                 __funnelshift_r(high[0], high[1], i) & kept});
      follow(samples, patterns, index, hits, key, mask, word * 32 + i);
    }
  }
}

// ---- the direct way: positions that the index cannot answer for, against every anchor ----

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

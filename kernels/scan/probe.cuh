// The indexed way: windows of the samples are looked up.

#include "scan.cuh"

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

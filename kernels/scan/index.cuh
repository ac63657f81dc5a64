// Making the index: where the patterns are anchored, and their seeds in a hashed table.

#include "scan.cuh"

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

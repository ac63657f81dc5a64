// Which positions the index cannot answer for, and which of them need no answer any more.

#include "scan.cuh"

// Tiles of 1,024 positions are compared by `direct` up to this many of them, by `sweep` above.
constexpr u32 SPARSE = 384;

// The positions of a word that only a window with more than `blanks` ambiguous bases could find; all
// of them if `every`. Behind the last whole window there is none.
__device__ u32 wanted_of(const Samples& samples, u32 word, u32 k, u32 blanks, bool every) {
  const i64 left = i64(samples.bases) - i64(word) * 32 - (every ? 0 : k - 1);
  if (left <= 0) return 0;
  const u32 inside = left < 32 ? (1u << left) - 1 : ALL;
  if (every) return inside;
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
  return wanted & inside;
}

// All signatures of the record were found, and none can begin lower from this position on.
__device__ bool settled(const Samples& samples, const Patterns& patterns, const Hits& hits,
                        u32 position, u32 max_anchor) {
  const u32 record = record_of(samples, position);
  const volatile u32* found = hits.found;
  if (found[record] < patterns.n / patterns.strands) return false;
  __threadfence();
  const volatile u32* greatest = hits.greatest;
  return position - samples.offsets[record] > i64(greatest[record]) + max_anchor;
}

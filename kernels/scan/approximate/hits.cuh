// Where hits with mismatches go. All hits: a list. One of each record and signature (FIRST): a table
// with the one of least rank, that with the lowest start or, with BEST, the fewest mismatches.

#include "../scan.cuh"

constexpr u32 ERROR_BITS = 31, PLACE_BITS = 33;

// place: start in the record * strands + strand.
__device__ __forceinline__ u64 rank_of(u64 place, u64 errors) {
  return BEST ? errors << PLACE_BITS | place : place << ERROR_BITS | errors;
}

__device__ __forceinline__ u64 place_of(u64 rank) {
  return BEST ? rank & ((1ull << PLACE_BITS) - 1) : rank >> ERROR_BITS;
}

__device__ __forceinline__ int errors_of(u64 rank) {
  return int(BEST ? rank >> PLACE_BITS : rank & ((1ull << ERROR_BITS) - 1));
}

// start: in the record.
__device__ void keep_hit(const Hits& hits, const Patterns& patterns, u32 record, u32 pattern,
                         u32 start, u32 errors) {
  if (FIRST) {
    const u64 place = u64(start) * patterns.strands + pattern % patterns.strands;
    const u64 rank = rank_of(place, errors);
    keep_first(hits, record, pattern / patterns.strands, start, rank);
    return;
  }
  const u64 place = atomicAdd(hits.count, 1ull);
  if (place < hits.capacity) hits.list[place] = make_int4(record, pattern, start, errors);
  else *hits.full = 1;
}

// Whether a hit without mismatches at this start would not be kept.
__device__ bool never_kept(const Hits& hits, const Patterns& patterns, u32 record, u32 pattern,
                           u32 start) {
  if (!FIRST) return false;
  const u64 place = u64(start) * patterns.strands + pattern % patterns.strands;
  return best_of(hits, pair_of(record, pattern / patterns.strands)) <= rank_of(place, 0);
}

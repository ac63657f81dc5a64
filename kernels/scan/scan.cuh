// What all kernels of a search share: their arguments, the comparison, and where hits go. Compiled
// for all or one hit of each record and signature (FIRST), that with the lowest start or, with BEST,
// the fewest mismatches, and for the meaning of ambiguous bases in samples (STRICT: they must be
// subsets of the pattern's bases).

#include "planes.cuh"

constexpr u32 WARP = 32;
constexpr u32 FULL = ALL;
constexpr int NOTHING = -1;
constexpr u32 TILE = WARP * 32;  // positions that a warp looks at together

struct Window {
  u32 mask, low, high;  // blanked places; two bits a base, 0 where blanked
};

struct Hashed {
  u32 place, tag;  // place: the high bits pick filter bit and bucket; tag: tells keys of one apart
};

__device__ __forceinline__ Hashed hashed(Window key) {
  const u32 tag = (key.low | (key.high << 16)) ^ (key.mask * 0x9E3779B1u);
  u32 x = tag * 0x85EBCA77u;
  x ^= x >> 15;
  x = (x + key.mask) * 0xC2B2AE3Du;
  x ^= x >> 13;
  return {x * 0x27D4EB2Fu, tag};
}

struct Patterns {
  const uint4* planes;  // every pattern from a word of its own
  const i64* words;  // [n + 1] its first word
  const int* lengths;  // [n]
  const int* anchors;  // [n] where comparing begins
  const uint4* anchor;  // [n] the 32 bases from there; in fours, of which the rest match nothing
  u32 n, strands;
};

struct Samples {
  const uint4* planes;
  const i64* offsets;  // [records + 1]
  u32 records, bases;
};

struct Index {
  u32* clean;  // filter of windows without blanks
  u32* blank;  // and with
  int* heads;  // the last entry of each bucket
  int2*
      entries;  // tag, the entry before in the bucket; entry = (seed * STRIDE + phase) * masks + m
  const u32* masks;
  const int* seeded;  // pattern of each seed
  u32 clean_shift, blank_shift, bucket_shift;
  u32 n_masks, n_seeded, k, blanks;
};

// Tiles with too many positions that the index cannot answer for are left to the sweep.
struct Crowded {
  unsigned char* tiles;  // null: the sweep is for all of them
  u32* any;
  u32 n, reach;  // patterns with a base in a tile begin in it or so many before it
};

// All hits: a list. With FIRST a table of (record, signature) whose values, ranks of hits, only fall,
// and of every record how many signatures it has and no less than their greatest start.
struct Hits {
  int4* list;  // record, pattern, start, errors
  u64* keys;
  u64* values;
  u32* found;
  u32* greatest;
  u64* count;  // more than the capacity, if need be
  u32* full;  // set when there was no room
  u32 capacity;  // of the list, or of the table: a power of two
};

constexpr u64 EMPTY = ~0ull;

__device__ __forceinline__ u32 differ(uint4 s, uint4 g) {
  if (STRICT) return (s.x & ~g.x) | (s.y & ~g.y) | (s.z & ~g.z) | (s.w & ~g.w);
  return ~((s.x & g.x) | (s.y & g.y) | (s.z & g.z) | (s.w & g.w));
}

// The record that holds a position: the last whose offset is not beyond it.
__device__ u32 record_of(const Samples& samples, u32 position) {
  u32 low = 0, high = samples.records;
  while (high - low > 1) {
    const u32 middle = (low + high) / 2;
    if (samples.offsets[middle] <= position) low = middle;
    else high = middle;
  }
  return low;
}

__device__ __forceinline__ u64 pair_of(u32 record, u32 signature) {
  return (u64(record) << 32) | signature;
}

__device__ __forceinline__ u32 slot_of(u64 pair, u32 capacity) {
  return u32((pair * 0x9E3779B97F4A7C15ull) >> 32) & (capacity - 1);
}

// The least value known of a pair, EMPTY where there is none or no more is needed to be known. May be
// out of date, then too high.
__device__ u64 best_of(const Hits& hits, u64 pair) {
  const volatile u64* keys = hits.keys;
  const volatile u64* values = hits.values;
  for (u32 slot = slot_of(pair, hits.capacity);; slot = (slot + 1) & (hits.capacity - 1)) {
    const u64 key = keys[slot];
    if (key == pair) return values[slot];
    if (key == EMPTY || *static_cast<volatile u32*>(hits.full)) return EMPTY;
  }
}

__device__ void keep_first(const Hits& hits, u32 record, u32 signature, u32 start, u64 value) {
  const u64 pair = pair_of(record, signature);
  for (u32 slot = slot_of(pair, hits.capacity);; slot = (slot + 1) & (hits.capacity - 1)) {
    if (*hits.full) return;
    const u64 key = atomicCAS(&hits.keys[slot], EMPTY, pair);
    if (key != EMPTY && key != pair) continue;
    atomicMin(&hits.values[slot], value);
    if (key == pair) return;
    if (atomicAdd(hits.count, 1ull) >= hits.capacity / 2) *hits.full = 1;
    atomicMax(&hits.greatest[record], start);
    __threadfence();
    atomicAdd(&hits.found[record], 1);
    return;
  }
}

constexpr u32 ERROR_BITS = 31, PLACE_BITS = 33;

// The place of a hit: start in the record * strands + strand.
__device__ __forceinline__ u64 place_of_hit(const Patterns& patterns, u32 pattern, u32 start) {
  return u64(start) * patterns.strands + pattern % patterns.strands;
}

__device__ __forceinline__ u64 rank_of(u64 place, u64 errors) {
  return BEST ? errors << PLACE_BITS | place : place << ERROR_BITS | errors;
}

__device__ __forceinline__ u64 place_of(u64 rank) {
  return BEST ? rank & ((1ull << PLACE_BITS) - 1) : rank >> ERROR_BITS;
}

__device__ __forceinline__ int errors_of(u64 rank) {
  return int(BEST ? rank >> PLACE_BITS : rank & ((1ull << ERROR_BITS) - 1));
}

__device__ void keep_hit(const Hits& hits, const Patterns& patterns, u32 record, u32 pattern,
                         u32 start, u32 errors) {
  if (FIRST) {
    const u64 rank = rank_of(place_of_hit(patterns, pattern, start), errors);
    keep_first(hits, record, pattern / patterns.strands, start, rank);
    return;
  }
  const u64 place = atomicAdd(hits.count, 1ull);
  if (place < hits.capacity) hits.list[place] = make_int4(record, pattern, start, errors);
  else *hits.full = 1;
}

// Whether a hit without errors at this start would not be kept.
__device__ bool never_kept(const Hits& hits, const Patterns& patterns, u32 record, u32 pattern,
                           u32 start) {
  if (!FIRST) return false;
  const u64 best = best_of(hits, pair_of(record, pattern / patterns.strands));
  return best <= rank_of(place_of_hit(patterns, pattern, start), 0);
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

// Does word j of pattern p differ from the sample under it, when p begins at `start`?
__device__ __forceinline__ bool word_differs(const Samples& samples, const Patterns& patterns,
                                             u32 p, u32 start, u32 j) {
  return differ(window(samples.planes, start + 32 * j), patterns.planes[patterns.words[p] + j]);
}

// The mismatches of the bases [first, stop) of a pattern, as far as it may have so many. In exact parts
// one is too many. limit: most mismatches, bases of the exact prefix and of the exact suffix.
__device__ int count_mismatches(const Samples& samples, const Patterns& patterns, u32 p, int4 limit,
                                u32 start, int first, int stop) {
  const uint4* planes = patterns.planes + patterns.words[p];
  const int exact_stop = patterns.lengths[p] - limit.z;
  int count = 0;
  for (int place = first; place < stop; place += 32) {
    const u32 wrong = differ(window(samples.planes, start + place), window(planes, place)) &
                      below(stop - place);
    count += __popc(wrong);
    if (wrong & (below(limit.y - place) | ~below(exact_stop - place))) return limit.x + 1;
    if (count > limit.x) break;
  }
  return count;
}

// Whether pattern p may begin at `start` (-1 and less: before the first base) of some record.
__device__ bool inside(const Samples& samples, const Patterns& patterns, u32 p, int start,
                       u32& record) {
  if (start < 0 || u32(start) + patterns.lengths[p] > samples.bases) return false;
  record = record_of(samples, start);
  return start + patterns.lengths[p] <= samples.offsets[record + 1];
}

// Positions with few mismatches: a thread counts those of 32 positions in bit planes, query after
// query. The positions lie side by side (`count_everywhere`), or are those where the bases match that
// must (`select_positions`, then `count_selected`). Compiled for the bases of the longest query
// (PLACES), the rows of the table (ROWS), the planes of a counter (COUNTERS), the blocks of steps
// before the warp looks whether any position is left (LOOK), and the meaning of ambiguous bases
// (STRICT).

#include "scan.cuh"

constexpr u32 BASES = 4;
constexpr u32 EMPTY_ROW = PLACES * BASES;  // nothing differs there; sets of several bases follow
constexpr u32 THREADS = 64;  // of a block, so that a row of the table has 256 bytes
constexpr u32 STEPS = 8;  // of a block of steps, a byte each
constexpr u32 MOST_SETS = 16;  // place * MOST_SETS + set: bases of a query at a place

// A query is a pattern or a piece of it: a piece with few enough mismatches asks for the whole.
// Its steps are rows of the table, which stand for a base at a place.
struct alignas(16) Query {
  u32 pattern;
  int piece;  // number of the piece; pieces are words of the pattern. -1: the whole pattern
  u32 counted, exact;  // blocks of steps that may differ, and of those that must match
};

struct Queries {
  const Query* queries;
  const uint2* counted;  // [n, counted_room] blocks of steps
  const uint2* exact;  // [n, exact_room]
  const unsigned short* sets;  // [n_sets] of the rows after the empty one
  const int4* limits;  // of each pattern most mismatches, bases of exact prefix and exact suffix
  u32 n, counted_room, exact_room, n_sets;
  u32 most, _;  // mismatches of a query
};

// Positions in no order: `count` were found, of which the first `room` are here.
struct Selected {
  u32* positions;
  u32* count;
  u32 room, _;
};

// The positions whose base differs from a set of bases of a pattern, of the planes under them.
__device__ __forceinline__ u32 differ_from(uint4 s, u32 set) {
  const uint4 g = make_uint4(set & 1 ? ALL : 0, set & 2 ? ALL : 0, set & 4 ? ALL : 0,
                             set & 8 ? ALL : 0);
  return differ(s, g);
}

// The 32 positions of a word that are after the last base.
__device__ __forceinline__ u32 after_last(u32 bases, u32 word) {
  const i64 left = i64(bases) - i64(word) * 32;
  return left <= 0 ? ALL : left < 32 ? ALL << left : 0;
}

// ---- counters -----------------------------------------------------------------------------------

// Adds two bits to a third; returns what is carried over.
__device__ __forceinline__ u32 add_two(u32& sum, u32 a, u32 b) {
  const u32 carry = (sum & a) | (b & (sum ^ a));
  sum ^= a ^ b;
  return carry;
}

// Adds eight bits to the counters of all positions; returns which have overflowed.
__device__ __forceinline__ u32 add_eight(u32 (&counter)[COUNTERS], const u32 (&bits)[STEPS]) {
  u32 twos[4], fours[2];
#pragma unroll
  for (u32 i = 0; i < 4; ++i) twos[i] = add_two(counter[0], bits[2 * i], bits[2 * i + 1]);
#pragma unroll
  for (u32 i = 0; i < 2; ++i) fours[i] = add_two(counter[1], twos[2 * i], twos[2 * i + 1]);
  if constexpr (COUNTERS == 2) {
    return fours[0] | fours[1];
  } else {
    u32 carry = add_two(counter[2], fours[0], fours[1]);
#pragma unroll
    for (u32 plane = 3; plane < COUNTERS; ++plane) {
      const u32 next = counter[plane] & carry;
      counter[plane] ^= carry;
      carry = next;
    }
    return carry;
  }
}

// ---- the table: of each base at each place, the positions that differ ---------------------------

// The rows of a block of steps. A row has 256 bytes, so that the place of a thread's word in it is
// the step and the thread, side by side.
__device__ __forceinline__ void read_rows(const u32* table, uint2 steps, u32 (&rows)[STEPS]) {
  const char* begin = reinterpret_cast<const char*>(table);
  const u32 column = threadIdx.x * sizeof(u32);
#pragma unroll
  for (u32 i = 0; i < STEPS; ++i) {
    const u32 offset = __byte_perm(i < 4 ? steps.x : steps.y, column, 0x5504 | (i % 4) << 4);
    rows[i] = *reinterpret_cast<const u32*>(begin + offset);
  }
}

// Fills a thread's column for the 32 positions of a word. After the last base everything differs.
__device__ void fill(u32 (*table)[THREADS], const Samples& samples, const Queries& queries,
                     u32 word) {
  const u32 thread = threadIdx.x, words = (samples.bases + 31) / 32, used = min(word, words);
  const u32 none = after_last(samples.bases, word);
  const uint4 here = samples.planes[used], after = samples.planes[min(used + 1, words)];
#pragma unroll
  for (u32 place = 0; place < PLACES; ++place) {
    const uint4 s = shifted(here, after, place);
#pragma unroll
    for (u32 base = 0; base < BASES; ++base)
      table[place * BASES + base][thread] = differ_from(s, 1u << base) | none;
  }
  table[EMPTY_ROW][thread] = 0;
  for (u32 i = 0; i < queries.n_sets; ++i) {
    const u32 place = queries.sets[i] / MOST_SETS, set = queries.sets[i] % MOST_SETS;
    table[EMPTY_ROW + 1 + i][thread] = differ_from(shifted(here, after, place), set) | none;
  }
}

// Bit i of word j becomes bit j of word i.
__device__ __forceinline__ void transpose(u32 (&words)[32]) {
#pragma unroll
  for (u32 half = 16, low = 0xFFFF; half; half /= 2, low ^= low << half) {
#pragma unroll
    for (u32 i = 0; i < 32; ++i) {
      if (i & half) continue;
      const u32 swapped = ((words[i] >> half) ^ words[i + half]) & low;
      words[i + half] ^= swapped;
      words[i] ^= swapped << half;
    }
  }
}

// Fills a thread's column for 32 selected positions, every 32nd from `first` on, so that a warp
// reads those that lie near each other at a time. Where there are none left everything differs.
__device__ void gather(u32 (*table)[THREADS], const Samples& samples, const Queries& queries,
                       const Selected& selected, u32 first, u32 count) {
  const u32 thread = threadIdx.x;
#pragma unroll 1
  for (u32 base = 0; base < BASES; ++base) {
    u32 rows[32];
#pragma unroll
    for (u32 i = 0; i < 32; ++i) {
      const u32 at = first + 32 * i;
      rows[i] = ALL;
      if (at < count)
        rows[i] = differ_from(window(samples.planes, selected.positions[at]), 1u << base);
    }
    transpose(rows);
#pragma unroll
    for (u32 place = 0; place < PLACES; ++place) table[place * BASES + base][thread] = rows[place];
  }
  table[EMPTY_ROW][thread] = 0;
  for (u32 i = 0; i < queries.n_sets; ++i) {
    const u32 place = queries.sets[i] / MOST_SETS, set = queries.sets[i] % MOST_SETS;
    u32 row = ALL;
    for (u32 j = 0; j < 32 && first + 32 * j < count; ++j) {
      const u32 position = selected.positions[first + 32 * j] + place;
      row ^= (~differ_from(window(samples.planes, position), set) & 1) << j;
    }
    table[EMPTY_ROW + 1 + i][thread] = row;
  }
}

// ---- hits ---------------------------------------------------------------------------------------

// Keeps the hit of a query with so many errors at a position, if it is one.
__device__ void settle(const Samples& samples, const Patterns& patterns, const Hits& hits,
                       const Queries& queries, const Query& query, u32 position, int errors) {
  const int start = int(position) - 32 * max(query.piece, 0);
  u32 record;
  if (!inside(samples, patterns, query.pattern, start, record)) return;
  const u32 start_in_record = start - int(samples.offsets[record]);
  if (never_kept(hits, patterns, record, query.pattern, start_in_record)) return;
  if (query.piece >= 0) {
    const int4 limit = queries.limits[query.pattern];
    const int length = patterns.lengths[query.pattern];
    errors = count_mismatches(samples, patterns, query.pattern, limit, start, 0, length);
    if (errors > limit.x) return;
  }
  keep_hit(hits, patterns, record, query.pattern, start_in_record, errors);
}

// Which positions differ at a base that must match.
__device__ __forceinline__ u32 differ_exactly(const u32* table, const uint2* steps, u32 blocks) {
  u32 rows[STEPS], wrong = 0;
#pragma unroll 1
  for (u32 block = 0; block < blocks; ++block) {
    read_rows(table, steps[block], rows);
#pragma unroll
    for (u32 i = 0; i < STEPS; ++i) wrong |= rows[i];
  }
  return wrong;
}

// Goes through the queries with a filled table. `position_of` says which position a bit stands for,
// `must_match` whether exact bases are still to be compared.
template <class PositionOf>
__device__ __forceinline__ void count(const u32* table, const Samples& samples,
                                      const Patterns& patterns, const Hits& hits,
                                      const Queries& queries, bool must_match,
                                      PositionOf position_of) {
  // A counter overflows with the first mismatch too many.
  const u32 begin = (1u << COUNTERS) - 1 - queries.most;
  u32 first[COUNTERS];
#pragma unroll
  for (u32 plane = 0; plane < COUNTERS; ++plane) first[plane] = (begin >> plane) & 1 ? ALL : 0;
  for (u32 q = 0; q < queries.n; ++q) {
    const Query query = queries.queries[q];
    const uint2* steps = queries.counted + size_t(q) * queries.counted_room;
    uint2 early[LOOK];
#pragma unroll
    for (u32 block = 0; block < LOOK; ++block) early[block] = steps[block];
    u32 dead = 0, rows[STEPS], counter[COUNTERS];
    if (must_match && query.exact) {
      const uint2* exact = queries.exact + size_t(q) * queries.exact_room;
      dead = differ_exactly(table, exact, query.exact);
      if (!__any_sync(FULL, dead != ALL)) continue;
    }
#pragma unroll
    for (u32 plane = 0; plane < COUNTERS; ++plane) counter[plane] = first[plane];
#pragma unroll
    for (u32 block = 0; block < LOOK; ++block) {
      read_rows(table, early[block], rows);
      dead |= add_eight(counter, rows);
    }
    if (!__any_sync(FULL, dead != ALL)) continue;
#pragma unroll 1
    for (u32 block = LOOK; block < query.counted; ++block) {
      read_rows(table, steps[block], rows);
      dead |= add_eight(counter, rows);
    }
    for (u32 found = ~dead; found; found &= found - 1) {
      const u32 bit = __ffs(found) - 1;
      int errors = -int(begin);
#pragma unroll
      for (u32 plane = 0; plane < COUNTERS; ++plane)
        errors += ((counter[plane] >> bit) & 1) << plane;
      settle(samples, patterns, hits, queries, query, position_of(bit), errors);
    }
  }
}

// ---- kernels ------------------------------------------------------------------------------------

// Whether a hit may begin in a tile that has a base in a crowded one.
__device__ bool is_near_crowded(const Crowded& crowded, u32 tile) {
  bool is_near = false;
  for (u32 i = tile + threadIdx.x % WARP; i < min(tile + crowded.reach + 1, crowded.n); i += WARP)
    is_near |= crowded.tiles[i];
  return __any_sync(FULL, is_near);
}

// All positions, or those near crowded tiles, unless those of the queries' exact bases were selected
// and had room.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_everywhere(Samples samples, Patterns patterns, Hits hits, Queries queries,
                     Selected selected, Crowded crowded) {
  __shared__ u32 table[ROWS][THREADS];
  if (selected.count && *selected.count <= selected.room) return;
  const u32 word = blockIdx.x * THREADS + threadIdx.x, tile = word / WARP;
  if (crowded.tiles && !is_near_crowded(crowded, tile)) return;
  if (FIRST && !BEST && tile * TILE < samples.bases) {
    const u32 record = record_of(samples, tile * TILE);
    const bool is_inside = u64(tile + 1) * TILE <= u64(samples.offsets[record + 1]);
    if (is_inside && __any_sync(FULL, settled(samples, patterns, hits, tile * TILE, 0))) return;
  }
  fill(table, samples, queries, word);
  count(&table[0][0], samples, patterns, hits, queries, true,
        [=](u32 bit) { return word * 32 + bit; });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    count_selected(Samples samples, Patterns patterns, Hits hits, Queries queries,
                   Selected selected) {
  __shared__ u32 table[ROWS][THREADS];
  const u32 n = *selected.count, warp = (blockIdx.x * THREADS + threadIdx.x) / WARP;
  if (n > selected.room || blockIdx.x * THREADS * 32 >= n) return;
  const u32 first = warp * WARP * 32 + threadIdx.x % WARP;
  gather(table, samples, queries, selected, first, n);
  count(&table[0][0], samples, patterns, hits, queries, false, [=](u32 bit) {
    const u32 at = first + 32 * bit;
    return at < n ? selected.positions[at] : ALL;
  });
}

// The positions at which some bases match, place * MOST_SETS + set each.
extern "C" __global__ void __launch_bounds__(256)
    select_positions(Samples samples, const unsigned short* __restrict__ bases, u32 n_bases,
                     Selected selected) {
  const u32 word = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % WARP;
  u32 found = ~after_last(samples.bases, word);
  for (u32 i = 0; i < n_bases && found; ++i) {
    const uint4 s = window(samples.planes, word * 32 + bases[i] / MOST_SETS);
    found &= ~differ_from(s, bases[i] % MOST_SETS);
  }
  u32 end = __popc(found);  // of this lane's positions among those of the warp
#pragma unroll
  for (u32 step = 1; step < WARP; step *= 2) {
    const u32 before = __shfl_sync(FULL, end, lane - step);
    if (lane >= step) end += before;
  }
  u32 begin = 0;
  if (lane == WARP - 1 && end) begin = atomicAdd(selected.count, end);
  u32 at = __shfl_sync(FULL, begin, WARP - 1) + end - __popc(found);
  for (; found; found &= found - 1, ++at)
    if (at < selected.room) selected.positions[at] = word * 32 + __ffs(found) - 1;
}

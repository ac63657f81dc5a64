// Positions with few mismatches: a thread counts those of 32 positions in bit planes, pattern after
// pattern. Compiled for the bases of the longest query (PLACES), for the threads of a block (THREADS),
// for the planes of a counter (COUNTERS), and for the meaning of ambiguous bases (STRICT).

#include "../scan.cuh"

constexpr u32 BASES = 4;
constexpr u32 ROWS = PLACES * BASES + 1;  // of the table; the last one is empty
constexpr u32 CHECKED = 4;  // triples between two looks at whether any position is left

// A query is a pattern or a piece of it: a piece with few enough mismatches asks for the whole.
struct Query {
  u32 pattern;
  u32 piece;  // number of the piece; pieces are words of the pattern
  u32 pieces;  // 0: the query is the whole pattern
  u32 exact;  // steps that must match, then
  u32 triples;  // three steps at a time that may differ, then
  u32 ambiguous;  // places with ambiguous bases of the pattern, each of which is place * 16 + set,
  u32 is_exact;  // of which the first so many must match
  u32 most;
};

// The positions whose base differs from a set of bases of the pattern, of the planes under them.
__device__ __forceinline__ u32 differ_from(uint4 s, u32 set) {
  const uint4 g = make_uint4(set & 1 ? ALL : 0, set & 2 ? ALL : 0, set & 4 ? ALL : 0,
                             set & 8 ? ALL : 0);
  return differ(s, g);
}

// The mismatches of the whole pattern, or more than it may have; more, too, where an earlier piece
// of it asks for the same start.
__device__ int count_all(const Samples& samples, const Patterns& patterns, int4 limit,
                         const Query& query, u32 start) {
  const int length = patterns.lengths[query.pattern], most = limit.x;
  int count = 0;
  for (int word = 0; word * 32 < length; ++word) {
    const int left = length - word * 32;
    const u32 inside = left < 32 ? (1u << left) - 1 : ALL;
    const uint4 g = patterns.planes[patterns.words[query.pattern] + word];
    const u32 wrong = differ(window(samples.planes, start + word * 32), g) & inside;
    for (u32 rest = wrong; rest; rest &= rest - 1) {
      const int place = word * 32 + __ffs(rest) - 1;
      if (place < limit.y || place >= length - limit.z) return most + 1;
    }
    if (word < int(query.piece) && __popc(wrong) <= int(query.most)) return most + 1;
    count += __popc(wrong);
    if (count > most) return most + 1;
  }
  return count;
}

// Adds a bit to the counters of all positions, from a plane on; returns which have overflowed.
__device__ __forceinline__ u32 add(u32* counter, u32 from, u32 carry) {
#pragma unroll
  for (u32 plane = from; plane < COUNTERS; ++plane) {
    const u32 next = counter[plane] & carry;
    counter[plane] ^= carry;
    carry = next;
  }
  return carry;
}

// limits: of each pattern the most mismatches, the bases of the exact prefix and the exact suffix.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_mismatches(Samples samples, Patterns patterns, Hits hits, const int4* __restrict__ limits,
                     const Query* __restrict__ queries, u32 n_queries,
                     const unsigned short* __restrict__ steps, u32 room) {
  __shared__ u32 table[ROWS][THREADS];
  const u32 thread = threadIdx.x, word = blockIdx.x * THREADS + thread;
  const u32 words = (samples.bases + 31) / 32, used = min(word, words);
  for (u32 place = 0; place < PLACES; ++place) {
    const u32 from = min(used + place / 32, words), to = min(from + 1, words);
    const uint4 s = shifted(samples.planes[from], samples.planes[to], place & 31);
    for (u32 base = 0; base < BASES; ++base)
      table[place * BASES + base][thread] = differ_from(s, 1u << base);
  }
  table[ROWS - 1][thread] = 0;
  const i64 left = i64(samples.limit) - i64(word) * 32;
  const u32 outside = left <= 0 ? ALL : left < 32 ? ALL << left : 0;
  for (u32 q = 0; q < n_queries; ++q) {
    const Query query = queries[q];
    const unsigned short* step = steps + size_t(q) * room;
    u32 dead = query.pieces ? 0 : outside;
    for (u32 i = 0; i < query.exact; ++i) dead |= table[*step++][thread];
    if (!__any_sync(FULL, dead != ALL)) continue;
    u32 counter[COUNTERS];
    const u32 begin = (1u << COUNTERS) - 1 - query.most;
#pragma unroll
    for (u32 plane = 0; plane < COUNTERS; ++plane) counter[plane] = (begin >> plane) & 1 ? ALL : 0;
    bool any = true;
    for (u32 i = 0; i < query.triples && any; ++i) {
      const u32 a = table[step[0]][thread], b = table[step[1]][thread], c = table[step[2]][thread];
      step += 3;
      const u32 one = a ^ b ^ c, two = (a & b) | (c & (a ^ b));
      const u32 over = counter[0] & one;
      counter[0] ^= one;
      const u32 carry = (two & over) | (counter[1] & (two ^ over));
      counter[1] ^= two ^ over;
      dead |= add(counter, 2, carry);
      if (i % CHECKED == CHECKED - 1) any = __any_sync(FULL, dead != ALL);
    }
    if (!any) continue;
    for (u32 i = 0; i < query.ambiguous; ++i) {
      const u32 place = step[i] / 16;
      const u32 from = min(used + place / 32, words), to = min(from + 1, words);
      const uint4 s = shifted(samples.planes[from], samples.planes[to], place & 31);
      const u32 wrong = differ_from(s, step[i] % 16);
      dead |= i < query.is_exact ? wrong : add(counter, 0, wrong);
    }
    for (u32 found = ~dead; found; found &= found - 1) {
      const u32 bit = __ffs(found) - 1;
      const int start = int(word * 32 + bit) - int(32 * query.piece);
      u32 record;
      if (!inside(samples, patterns, query.pattern, start, record)) continue;
      int errors = -int(begin);
#pragma unroll
      for (u32 plane = 0; plane < COUNTERS; ++plane)
        errors += ((counter[plane] >> bit) & 1) << plane;
      if (query.pieces) {
        const int4 limit = limits[query.pattern];
        errors = count_all(samples, patterns, limit, query, start);
        if (errors > limit.x) continue;
      }
      const u64 place = atomicAdd(hits.count, 1ull);
      if (place < hits.capacity)
        hits.list[place] = make_int4(record, query.pattern, start - int(samples.offsets[record]),
                                     errors);
      else *hits.full = 1;
    }
  }
}

// Ends of pieces of samples that are few edits away from a query: a thread goes along a stretch with
// the columns of the tables of PAIR queries, a bit a row (Myers 1999, in the form of Hyyrö 2003).
// Compiled for the meaning of ambiguous bases in samples (STRICT).

#include "../scan.cuh"

constexpr u32 PAIR = 2;  // queries of a thread, which look at each base once
constexpr u32 STRETCH = 64;  // words of a stretch
constexpr u32 AHEAD =
    2;  // words before it, after which the table does not depend on what was before

// A query is a pattern or a piece of it of up to 32 bases. Bit 31 stands for its last base; every
// base matches the bits before its first one.
struct Query {
  u32 equal[4];  // its bases that match A, C, G, T
  u32 rows;  // one bit for every base
  u32 length, most, _;
};

struct Column {
  u32 plus, minus;
  int over;  // errors, less those that the query may have and one: negative where it is a candidate
};

__device__ __forceinline__ void go_on(Column& column, u32 equal) {
  const u32 vertical = equal | column.minus;
  const u32 horizontal = (((equal & column.plus) + column.plus) ^ column.plus) | equal;
  u32 up = column.minus | ~(horizontal | column.plus);
  u32 down = column.plus & horizontal;
  column.over += int(up >> 31) - int(down >> 31);
  up <<= 1;
  down <<= 1;
  column.plus = down | ~(vertical | up);
  column.minus = up & vertical;
}

// Which bases of the query match a base of the sample that may stand for several.
__device__ __forceinline__ u32 equal_to(const Query& query, u32 a, u32 c, u32 g, u32 t) {
  if (STRICT)
    return (query.equal[0] | (a - 1)) & (query.equal[1] | (c - 1)) & (query.equal[2] | (g - 1)) &
           (query.equal[3] | (t - 1));
  return (query.equal[0] & (0 - a)) | (query.equal[1] & (0 - c)) | (query.equal[2] & (0 - g)) |
         (query.equal[3] & (0 - t));
}

__device__ void keep_run(const Hits& hits, u32 query, int first, int last, u32 n_queries) {
  if (query >= n_queries) return;  // the last query, a second time
  const u64 place = atomicAdd(hits.count, 1ull);
  if (place < hits.capacity) hits.list[place] = make_int4(query, first, last, 0);
  else *hits.full = 1;
}

// Stretches of ends that are near enough: query, first and last end in the chunk. Runs that cross
// from one thread's stretch to the next are two.
extern "C" __global__ void __launch_bounds__(128)
    find_ends(Samples samples, const Query* __restrict__ queries, u32 n_queries, u32 stretches,
              Hits hits) {
  const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
  const u32 first_query = thread / stretches * PAIR;
  const u32 begin = thread % stretches * STRETCH;
  const u32 words = (samples.bases + 31) / 32, end = min(begin + STRETCH, words);
  if (first_query >= n_queries) return;
  Query query[PAIR];
  Column column[PAIR];
#pragma unroll
  for (u32 q = 0; q < PAIR; ++q) {
    query[q] = queries[min(first_query + q, n_queries - 1)];
    column[q] = {query[q].rows, 0, int(query[q].length) - int(query[q].most) - 1};
  }
  int open[PAIR];  // the first end of the run, or -1
#pragma unroll
  for (u32 q = 0; q < PAIR; ++q)  // before the first base is an end, too
    open[q] = begin == 0 && column[q].over < 0 ? 0 : -1;
  for (u32 word = begin < AHEAD ? 0 : begin - AHEAD; word < end; ++word) {
    const uint4 s = samples.planes[word];
    u32 low[PAIR] = {};  // which ends are candidates, the last one in bit 0
    if (single(s) == ALL) {
      const u32 low_bits = s.y | s.w, high_bits = s.z | s.w;  // A 00, C 01, G 10, T 11
#pragma unroll
      for (u32 i = 0; i < 32; ++i) {
        const bool is_low = low_bits & (1u << i), is_high = high_bits & (1u << i);
#pragma unroll
        for (u32 q = 0; q < PAIR; ++q) {
          go_on(column[q], is_high ? (is_low ? query[q].equal[3] : query[q].equal[2])
                                   : (is_low ? query[q].equal[1] : query[q].equal[0]));
          low[q] = __funnelshift_l(u32(column[q].over), low[q], 1);
        }
      }
    } else {
#pragma unroll 1
      for (u32 i = 0; i < 32; ++i) {
        const u32 a = (s.x >> i) & 1, c = (s.y >> i) & 1, g = (s.z >> i) & 1, t = (s.w >> i) & 1;
#pragma unroll
        for (u32 q = 0; q < PAIR; ++q) {
          go_on(column[q], equal_to(query[q], a, c, g, t));
          low[q] = __funnelshift_l(u32(column[q].over), low[q], 1);
        }
      }
    }
    if (word < begin) continue;
#pragma unroll
    for (u32 q = 0; q < PAIR; ++q) {
      const u32 is_low = __brev(low[q]);
      u32 left = ALL;  // ends that are not looked at yet
      for (u32 rest; (rest = (open[q] < 0 ? is_low : ~is_low) & left) != 0;) {
        const u32 i = __ffs(rest) - 1;
        const int here = word * 32 + i + 1;  // the end after this base
        if (open[q] >= 0) keep_run(hits, first_query + q, open[q], here - 1, n_queries);
        open[q] = open[q] < 0 ? here : -1;
        left = ALL << i;
      }
    }
  }
#pragma unroll
  for (u32 q = 0; q < PAIR; ++q)
    if (open[q] >= 0) keep_run(hits, first_query + q, open[q], int(end * 32), n_queries);
}

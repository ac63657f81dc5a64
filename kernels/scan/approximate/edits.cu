// Ends of pieces of samples that are few edits away from a query: a thread goes along a stretch with
// the columns of the tables of a group of queries, a bit a row (Myers 1999, in the form of Hyyrö 2003).

#include "../scan.cuh"

constexpr u32 GROUP = 4;  // queries of a thread, which look at each base once
constexpr u32 THREADS = 128;
constexpr u32 STRETCH = 64;  // words of a stretch
// Words before a stretch, after which the table does not depend on what was before.
constexpr u32 AHEAD = 2;
constexpr u32 SETS = 16;  // of bases

// A query is a pattern or a piece of it of up to 32 bases. Bit 31 stands for its last base; every
// base matches the bits before its first one.
struct Query {
  u32 equal[SETS];  // its bases that match each set of bases of a sample
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

// What matches a set of bases, of each query of a group.
struct alignas(4 * GROUP) Equal {
  u32 of[GROUP];
};

// The eight low bits, four places apart.
__device__ __forceinline__ u32 spread(u32 bits) {
  bits = (bits | (bits << 12)) & 0x000F000F;
  bits = (bits | (bits << 6)) & 0x03030303;
  return (bits | (bits << 3)) & 0x11111111;
}

// The sets of eight bases of a sample, side by side.
__device__ __forceinline__ u32 sets_of(uint4 s, u32 from) {
  return spread(s.x >> from & 0xFF) | spread(s.y >> from & 0xFF) << 1 |
         spread(s.z >> from & 0xFF) << 2 | spread(s.w >> from & 0xFF) << 3;
}

__device__ void keep_run(const Hits& hits, u32 query, int first, int last, u32 n_queries) {
  if (query >= n_queries) return;  // the last query, a second time
  const u64 place = atomicAdd(hits.count, 1ull);
  if (place < hits.capacity) hits.list[place] = make_int4(query, first, last, 0);
  else *hits.full = 1;
}

// Stretches of ends that are near enough: query, first and last end in the chunk. Runs that cross
// from one thread's stretch to the next are two. Each block has some queries and some stretches.
extern "C" __global__ void __launch_bounds__(THREADS)
    find_ends(Samples samples, const Query* __restrict__ queries, u32 n_queries, u32 blocks,
              Hits hits) {
  __shared__ Equal equal[SETS];
  const u32 first_query = blockIdx.x / blocks * GROUP;
  const u32 begin = (blockIdx.x % blocks * THREADS + threadIdx.x) * STRETCH;
  const u32 words = (samples.bases + 31) / 32, end = min(begin + STRETCH, words);
  if (threadIdx.x < SETS * GROUP) {
    const u32 q = threadIdx.x % GROUP, set = threadIdx.x / GROUP;
    equal[set].of[q] = queries[min(first_query + q, n_queries - 1)].equal[set];
  }
  __syncthreads();
  if (begin >= words) return;
  Column column[GROUP];
#pragma unroll
  for (u32 q = 0; q < GROUP; ++q) {
    const Query query = queries[min(first_query + q, n_queries - 1)];
    column[q] = {query.rows, 0, int(query.length) - int(query.most) - 1};
  }
  int open[GROUP];  // the first end of the run, or -1
#pragma unroll
  for (u32 q = 0; q < GROUP; ++q)  // before the first base is an end, too
    open[q] = begin == 0 && column[q].over < 0 ? 0 : -1;
  for (u32 word = begin < AHEAD ? 0 : begin - AHEAD; word < end; ++word) {
    const uint4 s = samples.planes[word];
    u32 low[GROUP] = {};  // which ends are candidates, the last one in bit 0
#pragma unroll 1
    for (u32 from = 0; from < 32; from += 8) {
      const u32 sets = sets_of(s, from);
#pragma unroll
      for (u32 i = 0; i < 8; ++i) {
        const Equal same = equal[sets >> 4 * i & (SETS - 1)];
#pragma unroll
        for (u32 q = 0; q < GROUP; ++q) {
          go_on(column[q], same.of[q]);
          low[q] = __funnelshift_l(u32(column[q].over), low[q], 1);
        }
      }
    }
    if (word < begin) continue;
#pragma unroll
    for (u32 q = 0; q < GROUP; ++q) {
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
  for (u32 q = 0; q < GROUP; ++q)
    if (open[q] >= 0) keep_run(hits, first_query + q, open[q], int(end * 32), n_queries);
}

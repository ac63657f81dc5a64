// Tables of seeds: how many seeds a pattern may have, where they are, and their entries. See seeds.py,
// and cpu_seeds.py, which makes the same tables but for the order of the entries of a key.

#include "../scan.cuh"

constexpr int CHECKED = 27, CHOICES = 4;  // see seeds.py

// The pieces into which patterns are cut.
struct Pieces {
  const int2* windows;  // of each pattern, clean ones and others
  const int* first;  // [patterns + 1] the first piece of each pattern
  int* pattern;
  int* begin;  // place of the piece and its seed in the pattern
  int* choices;  // entries of each piece; guards have none
  u32 n, k;
};

struct Seed {
  u32 low, high, compared, key;
};

struct SeedWindow {
  int begin;
  bool is_clean;
  int next_clean;
};

__device__ __forceinline__ u32 ambiguous(const uint4* planes, int at, u32 k) {
  return ~single(window(planes, at)) & below(k);
}

// The next window from `at` on. Clean ones are taken as if there were no others; without another the
// begin is the pattern's length.
__device__ SeedWindow next_window(const uint4* planes, int length, int at, int k, int clean) {
  if (clean < at) {
    clean = at;
    while (clean + k <= length) {
      const u32 mask = ambiguous(planes, clean, k);
      if (!mask) break;
      clean += __ffs(mask);
    }
    if (clean + k > length) clean = length;
  }
  for (; at + k <= clean; ++at)
    if (__popc(ambiguous(planes, at, k)) == 1) return {at, false, clean};
  return {clean, true, clean};
}

// Windows of k bases that do not overlap, clean ones and others: one thread a pattern and length.
extern "C" __global__ void count_windows(Patterns patterns, u32 shortest, u32 longest,
                                         int2* __restrict__ windows) {
  const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
  const u32 p = thread % patterns.n, k = shortest + thread / patterns.n;
  if (k > longest) return;
  const int length = patterns.lengths[p];
  const uint4* planes = patterns.planes + patterns.words[p];
  int2 count = make_int2(0, 0);
  SeedWindow at = next_window(planes, length, 0, k, -1);
  while (at.begin < length) {
    if (at.is_clean) ++count.x;
    else ++count.y;
    at = next_window(planes, length, at.begin + k, k, at.next_clean);
  }
  windows[k * patterns.n + p] = count;
}

// Windows of a pattern of which some are taken, as evenly as they come.
struct Taking {
  i64 all, wanted, seen, taken;

  __device__ bool take() {
    const bool is_taken = seen * wanted >= taken * all && taken < wanted;
    ++seen;
    taken += is_taken;
    return is_taken;
  }
};

// Chooses the seeds of a pattern, clean ones if they are enough: one thread a pattern.
// widest: the most bases from a piece to the next one of its pattern.
extern "C" __global__ void place_seeds(Patterns patterns, Pieces pieces,
                                       const int4* __restrict__ limits, int* widest) {
  const u32 p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= patterns.n) return;
  const int first = pieces.first[p], stop = pieces.first[p + 1];
  const int2 windows = pieces.windows[p];
  const int clean_wanted = min(stop - first, windows.x);
  Taking clean = {windows.x, clean_wanted}, other = {windows.y, stop - first - clean_wanted};
  SeedWindow at = {0, true, -1};
  for (int piece = first; piece < stop; at.begin += pieces.k) {
    at = next_window(patterns.planes + patterns.words[p], patterns.lengths[p], at.begin, pieces.k,
                     at.next_clean);
    if (!(at.is_clean ? clean : other).take()) continue;
    pieces.pattern[piece] = p;
    pieces.begin[piece] = at.begin;
    if (piece > first) atomicMax(widest, at.begin - pieces.begin[piece - 1]);
    pieces.choices[piece] = piece - first > limits[p].x ? 0 : at.is_clean ? 1 : CHOICES;
    ++piece;
  }
}

// The first bases of a piece, and its key with a choice for the ambiguous base of its seed.
__device__ Seed seed_of(const Patterns& patterns, const Pieces& pieces, u32 piece, int choice) {
  const int p = pieces.pattern[piece], at = pieces.begin[piece];
  const uint4 bases = window(patterns.planes + patterns.words[p], at);
  const u32 compared = single(bases) & below(min(CHECKED, patterns.lengths[p] - at));
  const u32 inside = below(pieces.k), chosen = ~compared & inside;
  Seed seed = {(bases.y | bases.w) & compared, (bases.z | bases.w) & compared, compared, 0};
  if (choice & 1) seed.low |= chosen;
  if (choice & 2) seed.high |= chosen;
  seed.key = (seed.low & inside) | (seed.high & inside) << pieces.k;
  return seed;
}

// How many of the CHECKED bases of a piece lie before another one of its pattern.
__device__ u32 bases_before(const Patterns& patterns, const Pieces& pieces, int piece, int other) {
  const int p = pieces.pattern[piece];
  const int end = other < pieces.first[p + 1] ? pieces.begin[other] : patterns.lengths[p];
  return min(CHECKED, end - pieces.begin[piece]);
}

// Marks the keys that seeds have, and counts the entries of each where the next one's begin.
extern "C" __global__ void count_entries(Patterns patterns, Pieces pieces, u32* __restrict__ known,
                                         int* __restrict__ heads) {
  const u32 piece = blockIdx.x * blockDim.x + threadIdx.x;
  if (piece >= pieces.n) return;
  for (int choice = 0; choice < pieces.choices[piece]; ++choice) {
    const u32 key = seed_of(patterns, pieces, piece, choice).key;
    atomicOr(&known[key >> 5], 1u << (key & 31));
    atomicAdd(&heads[key + 1], 1);
  }
}

// places: where the next entry of each key goes.
extern "C" __global__ void fill_entries(Patterns patterns, Pieces pieces, int* __restrict__ places,
                                        uint4* __restrict__ entries) {
  const u32 piece = blockIdx.x * blockDim.x + threadIdx.x;
  if (piece >= pieces.n) return;
  const u32 own = bases_before(patterns, pieces, piece, piece + 1) << CHECKED;
  const u32 both = bases_before(patterns, pieces, piece, piece + 2) << CHECKED;
  for (int choice = 0; choice < pieces.choices[piece]; ++choice) {
    const Seed seed = seed_of(patterns, pieces, piece, choice);
    entries[atomicAdd(&places[seed.key], 1)] = make_uint4(seed.low | own, seed.high | both,
                                                          seed.compared, piece);
  }
}

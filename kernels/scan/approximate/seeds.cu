// Hits with mismatches, and candidates with edits, by seeds; see seeds.py. Compiled for what counts as
// an error (EDITS) and for the meaning of ambiguous bases in samples (STRICT).

#include "../collect.cuh"

constexpr u32 CHECKED = 27;  // bases from a seed on that stand in the table
constexpr u32 CROWDED = 8;  // lookups of choices take as long as comparing so many entries
constexpr u32 SEEDED = 1;  // marks an end found by seeds

// See seeds.py.
struct Table {
  const u32* known;
  const int* heads;
  const uint4* entries;
  const int* pattern;
  const int* begin;
  const int* first;
  u32 k, most, n, widest;
};

// Bases of the samples from a position on: which are ambiguous, low and high bits of their codes.
struct Bases {
  u32 ambiguous, low, high;
};

struct Search {
  Samples samples;
  Patterns patterns;
  Table table;
  Hits hits;
  const int4* limits;  // of each pattern the most errors, the bases of exact prefix and suffix
};

// ---- edits ----

// Which bases of an entry differ from those of a sample.
__device__ __forceinline__ u32 differ_at(Bases bases, uint4 row) {
  return ((bases.low ^ row.x) | (bases.high ^ row.y)) & row.z & ~bases.ambiguous;
}

// Whether another entry of a seed with an ambiguous base stands for the sample's base there.
__device__ __forceinline__ bool has_other_choice(Bases bases, uint4 row, u32 k) {
  const u32 known = ~bases.ambiguous;
  const u32 other = ((bases.low & known) ^ row.x) | ((bases.high & known) ^ row.y);
  return other & ~row.z & below(k);
}

// Whether a piece has no error, and the next one at most one edit; of the bases of an entry.
__device__ __forceinline__ bool has_one_edit(Bases bases, uint4 row, u32 wrong) {
  const u32 both = below(row.y >> CHECKED);
  wrong &= both;
  if (wrong & below(row.x >> CHECKED)) return false;
  // The first base that differs is the one after which there is no other.
  const u32 rest = both & ~(wrong ^ (wrong - 1)), at = wrong & (0 - wrong);
  if (!(wrong & rest)) return true;
  const Bases inserted = {bases.ambiguous >> 1, bases.low >> 1, bases.high >> 1};
  if (!(differ_at(inserted, row) & (rest | at))) return true;
  const Bases deleted = {bases.ambiguous << 1, bases.low << 1, bases.high << 1};
  return !(differ_at(deleted, row) & rest);
}

// ---- looking up ----

// Whether the piece before has no error there, either, so that it finds what this one does.
__device__ bool follows_piece(const Search& search, u32 record, u32 p, int piece, int start) {
  if (piece == search.table.first[p]) return false;
  const int begin = search.table.begin[piece - 1], end = search.table.begin[piece];
  if (start + begin < int(search.samples.offsets[record])) return false;
  return !count_mismatches(search.samples, search.patterns, p, search.limits[p], u32(start), begin,
                           end);
}

// Keeps what is found by a piece at a position; of edits the end of a hit with as many insertions
// after the piece as deletions.
__device__ void settle(const Search& search, u32 position, int piece) {
  const u32 p = search.table.pattern[piece];
  const int start = int(position) - search.table.begin[piece];
  const u32 record = record_of(search.samples, position);
  if (follows_piece(search, record, p, piece, start)) return;
  const int in_record = start - int(search.samples.offsets[record]);
  if (EDITS) {
    const bool is_last = piece + 1 == search.table.first[p + 1];
    const int piece_end = is_last ? search.patterns.lengths[p] : search.table.begin[piece + 1];
    if (start + piece_end > search.samples.offsets[record + 1]) return;
    const u32 end = in_record + search.patterns.lengths[p];
    keep_hit(search.hits, search.patterns, record, p, end, SEEDED);
    return;
  }
  u32 same;
  if (!inside(search.samples, search.patterns, p, start, same) || same != record) return;
  if (never_kept(search.hits, search.patterns, record, p, in_record)) return;
  const int4 limit = search.limits[p];
  const int errors = count_mismatches(search.samples, search.patterns, p, limit, start, 0,
                                      search.patterns.lengths[p]);
  if (errors <= limit.x) keep_hit(search.hits, search.patterns, record, p, in_record, errors);
}

__device__ __forceinline__ void compare_entry(const Search& search, u32 position, Bases bases,
                                              u32 entry) {
  const uint4 row = search.table.entries[entry];
  const u32 wrong = differ_at(bases, row);
  const bool is_left = EDITS ? has_one_edit(bases, row, wrong) : __popc(wrong) <= search.table.most;
  if (is_left && !has_other_choice(bases, row, search.table.k)) settle(search, position, row.w);
}

__device__ __forceinline__ void look_up(const Search& search, u32 position, Bases bases, u32 key) {
  const Table& table = search.table;
  if (!((__ldg(&table.known[key >> 5]) >> (key & 31)) & 1)) return;
  const int end = table.heads[key + 1];
  for (int entry = table.heads[key]; entry < end; ++entry)
    compare_entry(search, position, bases, entry);
}

// Bases that begin in a word of the samples, as words of bits, and those of the word after it.
struct Words {
  u32 ambiguous[2], low[2], high[2];
};

__device__ __forceinline__ Words words_at(const Samples& samples, u32 word) {
  const uint4 a = samples.planes[word], b = samples.planes[word + 1];
  return {{~single(a), ~single(b)}, {a.y | a.w, b.y | b.w}, {a.z | a.w, b.z | b.w}};
}

__device__ __forceinline__ Bases bases_at(const Words& words, u32 shift) {
  return {__funnelshift_r(words.ambiguous[0], words.ambiguous[1], shift),
          __funnelshift_r(words.low[0], words.low[1], shift),
          __funnelshift_r(words.high[0], words.high[1], shift)};
}

// Whether a window has so many ambiguous bases that all entries are looked at instead.
__device__ __forceinline__ bool is_crowded(u32 mask, const Table& table) {
  return __popc(mask) == table.k || (CROWDED << (2 * __popc(mask))) > table.n;
}

// Whether so many bases before a position and from it on match everything, in its record.
__device__ bool is_in_gap(const Search& search, u32 position, u32 before, u32 after) {
  const Samples& samples = search.samples;
  const u32 record = record_of(samples, position), stop = position + after;
  const i64 begin = i64(position) - before;
  if (STRICT || begin < samples.offsets[record] || stop > samples.offsets[record + 1]) return false;
  for (u32 at = u32(begin); at < stop; at += 32) {
    const uint4 bases = window(samples.planes, at);
    if (~(bases.x & bases.y & bases.z & bases.w) & below(stop - at)) return false;
  }
  return true;
}

// Settles first pieces at a position in a gap, where every other piece follows the one before it.
// Far from its ends the ends of hits with edits are one stretch, of which a part is enough.
__device__ void settle_in_gap(const Search& search, u32 position, u32 thread, u32 threads) {
  const Table& table = search.table;
  const u32 record = record_of(search.samples, position);
  const u32 in_record = position - u32(search.samples.offsets[record]);
  const bool is_far = EDITS && is_in_gap(search, position, table.widest + 1, CHECKED + 1);
  for (u32 p = thread; p < search.patterns.n; p += threads) {
    if (table.first[p] == table.first[p + 1]) continue;
    if (is_far && position % (search.limits[p].x + 1)) continue;
    const u32 begin = table.begin[table.first[p]];
    if (begin <= in_record &&
        never_kept(search.hits, search.patterns, record, p, in_record - begin))
      continue;
    settle(search, position, table.first[p]);
  }
}

// The lanes of a warp share the choices of bases in a window's ambiguous places.
__device__ void try_choices(const Search& search, u32 position, Bases bases, u32 mask) {
  const u32 lane = threadIdx.x % WARP, k = search.table.k;
  const u32 low = bases.low & below(k) & ~mask, high = bases.high & below(k) & ~mask;
  for (u32 choice = lane; choice >> (2 * __popc(mask)) == 0; choice += WARP) {
    u32 chosen_low = low, chosen_high = high, rest = choice;
    for (u32 places = mask; places; places &= places - 1, rest >>= 2) {
      const u32 place = places & (0 - places);
      if (rest & 1) chosen_low |= place;
      if (rest & 2) chosen_high |= place;
    }
    look_up(search, position, bases, chosen_low | chosen_high << k);
  }
}

// A warp looks up the windows that begin in a word.
extern "C" __global__ void __launch_bounds__(256)
    find_seeds(Samples samples, Patterns patterns, Table table, Hits hits,
               const int4* __restrict__ limits) {
  const Search search = {samples, patterns, table, hits, limits};
  const u32 lane = threadIdx.x % WARP, k_bits = below(table.k);
  const u32 words = (samples.bases + 31) / 32, warps = gridDim.x * (blockDim.x / WARP);
  for (u32 word = (blockIdx.x * blockDim.x + threadIdx.x) / WARP; word < words; word += warps) {
    const Words here = words_at(samples, word);
    const Bases own = bases_at(here, lane);
    const u32 mask = own.ambiguous & k_bits;
    const bool is_inside = word * 32 + lane + table.k <= samples.bases;
    if (is_inside && !mask)
      look_up(search, word * 32 + lane, own, (own.low & k_bits) | (own.high & k_bits) << table.k);
    // With STRICT only the one base of a seed that may be ambiguous matches such a base.
    const bool is_wanted = is_inside && mask && (STRICT ? __popc(mask) == 1 : true);
    for (u32 rest = __ballot_sync(FULL, is_wanted && !is_crowded(mask, table)); rest;
         rest &= rest - 1) {
      const u32 shift = __ffs(rest) - 1;
      const Bases bases = bases_at(here, shift);
      try_choices(search, word * 32 + shift, bases, bases.ambiguous & k_bits);
    }
  }
}

// Windows with many ambiguous bases: a warp compares a slice of all entries with those that begin in
// 32 words.
extern "C" __global__ void __launch_bounds__(256)
    find_crowded(Samples samples, Patterns patterns, Table table, Hits hits,
                 const int4* __restrict__ limits, u32 slices) {
  const Search search = {samples, patterns, table, hits, limits};
  const u32 lane = threadIdx.x % WARP, warp = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
  const u32 words = (samples.bases + 31) / 32, first_word = warp / slices * WARP;
  const u32 first = u64(table.n) * (warp % slices) / slices;
  const u32 stop = u64(table.n) * (warp % slices + 1) / slices;
  if (first_word >= words) return;
  u32 crowded = 0;  // positions of the lane's word
  if (first_word + lane < words) {
    const Words here = words_at(samples, first_word + lane);
    const u32 most = min(__popc(here.ambiguous[0]) + __popc(here.ambiguous[1]), int(table.k));
    for (u32 shift = 0; shift < 32 && is_crowded(below(most), table); ++shift) {
      const u32 mask = bases_at(here, shift).ambiguous & below(table.k);
      const bool is_inside = (first_word + lane) * 32 + shift + table.k <= samples.bases;
      const bool is_wanted = is_inside && mask && (STRICT ? __popc(mask) == 1 : true);
      crowded |= u32(is_wanted && is_crowded(mask, table)) << shift;
    }
  }
  for (u32 lanes = __ballot_sync(FULL, crowded != 0); lanes; lanes &= lanes - 1) {
    const u32 source = __ffs(lanes) - 1;
    const Words here = words_at(samples, first_word + source);
    for (u32 rest = __shfl_sync(FULL, crowded, source); rest; rest &= rest - 1) {
      const u32 shift = __ffs(rest) - 1, position = (first_word + source) * 32 + shift;
      if (is_in_gap(search, position, table.widest, table.k)) {
        settle_in_gap(search, position, warp % slices * WARP + lane, slices * WARP);
        continue;
      }
      for (u32 entry = first + lane; entry < stop; entry += WARP)
        compare_entry(search, position, bases_at(here, shift), entry);
    }
  }
}

// Hits with mismatches, and candidates with edits, by seeds; see seeds.py. A warp looks up the windows
// that begin in a word of the samples. Compiled for what counts as an error (EDITS) and for the meaning
// of ambiguous bases in samples (STRICT).

#include "../scan.cuh"

constexpr u32 CHECKED = 27;  // bases from a seed on that stand in the table
constexpr u32 ROWS = 32;  // bases after a piece that are aligned
constexpr int NO_HIT = -1;

// See seeds.py.
struct Table {
  const u32* known;
  const int* heads;
  const uint4* entries;
  const int* pattern;
  const int* begin;
  const int* first;
  u32 k, most, n, _;
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

__device__ __forceinline__ u32 below(int count) {
  return count <= 0 ? 0 : count >= 32 ? ALL : (1u << count) - 1;
}

// ---- mismatches ----

// The mismatches of the bases [first, stop) of a pattern; too many in exact parts.
__device__ int count_mismatches(const Search& search, u32 p, int4 limit, u32 start, int first,
                                int stop) {
  const uint4* planes = search.patterns.planes + search.patterns.words[p];
  const int exact_stop = search.patterns.lengths[p] - limit.z;
  int count = 0;
  for (int place = first; place < stop; place += 32) {
    const u32 wrong = differ(window(search.samples.planes, start + place), window(planes, place)) &
                      below(stop - place);
    count += __popc(wrong);
    if (wrong & (below(limit.y - place) | ~below(exact_stop - place))) return limit.x + 1;
  }
  return count;
}

// The mismatches at a start; NO_HIT for too many, and where another piece reports it.
__device__ int count_errors(const Search& search, u32 p, int own, u32 start) {
  const Table& table = search.table;
  const int4 limit = search.limits[p];
  const int first = table.first[p], stop = table.first[p + 1], pieces = stop - first;
  int left = 0;  // pieces from the own one on, less their mismatches
  int lowest = pieces;
  for (int step = 0; step < pieces; ++step) {
    int piece = own + step;
    if (piece >= stop) {
      piece -= pieces;
      lowest = min(lowest, left);
    }
    const bool is_last = piece + 1 == stop;
    const int end = is_last ? search.patterns.lengths[p] : table.begin[piece + 1];
    left += 1 - count_mismatches(search, p, limit, start, table.begin[piece], end);
    // The bases before the first seed are the last piece's.
    if (is_last) left -= count_mismatches(search, p, limit, start, 0, table.begin[first]);
    if (left <= 0) return NO_HIT;
  }
  return left <= lowest ? pieces - left : NO_HIT;
}

// ---- edits ----

// The bases of a pattern, given by their planes, that match a base of the samples.
__device__ __forceinline__ u32 rows_equal(uint4 rows, uint4 s, u32 bit) {
  const u32 a = 0 - ((s.x >> bit) & 1), c = 0 - ((s.y >> bit) & 1), g = 0 - ((s.z >> bit) & 1),
            t = 0 - ((s.w >> bit) & 1);
  if (STRICT) return (rows.x | ~a) & (rows.y | ~c) & (rows.z | ~g) & (rows.w | ~t);
  return (rows.x & a) | (rows.y & c) | (rows.z & g) | (rows.w & t);
}

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

// Whether the bases after a piece without an error may be those of a hit. The first of them are
// aligned in a column of bits (Myers 1999), to all that follows in the sample. They have at most one
// edit for each piece that they are of.
__device__ bool may_follow(const Search& search, u32 position, u32 record_end, u32 p, int piece) {
  const Table& table = search.table;
  const int length = search.patterns.lengths[p], place = table.begin[piece];
  const int stop = table.first[p + 1], end = piece + 1 < stop ? table.begin[piece + 1] : length;
  const int compared = min(int(CHECKED), end - place);
  if (position + compared > record_end) return false;
  const int rows = min(int(ROWS), length - place - compared);
  int most = 0;
  while (piece + 1 + most < stop && table.begin[piece + 1 + most] < place + compared + rows) ++most;
  const uint4 bases =
      window(search.patterns.planes + search.patterns.words[p], u32(place + compared));
  u32 plus = ALL, minus = 0, at = position + compared;
  const u32 last = max(0, rows - 1), at_end = min(record_end, at + rows + most);
  int errors = rows;
  while (errors > most && at < at_end) {
    const u32 equal = rows_equal(bases, search.samples.planes[at >> 5], at & 31);
    const u32 vertical = equal | minus;
    const u32 horizontal = (((equal & plus) + plus) ^ plus) | equal;
    u32 up = minus | ~(horizontal | plus), down = plus & horizontal;
    errors += int((up >> last) & 1) - int((down >> last) & 1);
    up = up << 1 | 1;
    down <<= 1;
    plus = down | ~(vertical | up);
    minus = up & vertical;
    ++at;
  }
  return errors <= most;
}

// ---- looking up ----

// Whether the piece before has no error there, either, so that it finds what this one does.
__device__ bool follows_piece(const Search& search, u32 record, u32 p, int piece, int start) {
  if (piece == search.table.first[p]) return false;
  const int begin = search.table.begin[piece - 1], end = search.table.begin[piece];
  if (start + begin < int(search.samples.offsets[record])) return false;
  return !count_mismatches(search, p, search.limits[p], u32(start), begin, end);
}

// Keeps record, pattern, start and mismatches; of edits the end of a hit with as many insertions after
// the piece as deletions, and a mark that tells it from what the sweep finds.
__device__ void settle(const Search& search, u32 position, int piece) {
  const u32 p = search.table.pattern[piece];
  const int start = int(position) - search.table.begin[piece];
  const u32 record = record_of(search.samples, position);
  if (follows_piece(search, record, p, piece, start)) return;
  int4 found;
  if (EDITS) {
    if (!may_follow(search, position, search.samples.offsets[record + 1], p, piece)) return;
    found = make_int4(record, p, start + search.patterns.lengths[p], 1);
  } else {
    u32 same;
    if (!inside(search.samples, search.patterns, p, start, same) || same != record) return;
    const int errors = count_errors(search, p, piece, start);
    if (errors == NO_HIT) return;
    found = make_int4(record, p, start, errors);
  }
  found.z -= int(search.samples.offsets[record]);
  const u64 place = atomicAdd(search.hits.count, 1ull);
  if (place < search.hits.capacity) search.hits.list[place] = found;
  else *search.hits.full = 1;
}

__device__ __forceinline__ void compare_entry(const Search& search, u32 position, Bases bases,
                                              u32 entry) {
  const uint4 row = search.table.entries[entry];
  const u32 wrong = differ_at(bases, row);
  const bool is_left =
      EDITS ? has_one_edit(bases, row, wrong) : __popc(wrong) <= search.table.most;
  if (is_left && !has_other_choice(bases, row, search.table.k)) settle(search, position, row.w);
}

__device__ __forceinline__ void look_up(const Search& search, u32 position, Bases bases, u32 key) {
  const Table& table = search.table;
  if (!((__ldg(&table.known[key >> 5]) >> (key & 31)) & 1)) return;
  const int end = table.heads[key + 1];
  for (int entry = table.heads[key]; entry < end; ++entry)
    compare_entry(search, position, bases, entry);
}

__device__ __forceinline__ Bases bases_at(const u32* ambiguous, const u32* low, const u32* high,
                                          u32 shift) {
  return {__funnelshift_r(ambiguous[0], ambiguous[1], shift),
          __funnelshift_r(low[0], low[1], shift), __funnelshift_r(high[0], high[1], shift)};
}

// The lanes of a warp share the choices of bases in a window's ambiguous places.
__device__ void try_choices(const Search& search, u32 position, Bases bases, u32 mask) {
  const u32 lane = threadIdx.x % WARP, k = search.table.k, k_bits = (1u << k) - 1;
  const u32 choices = 1u << (2 * __popc(mask));
  if (choices > search.table.n) {
    for (u32 entry = lane; entry < search.table.n; entry += WARP)
      compare_entry(search, position, bases, entry);
    return;
  }
  for (u32 choice = lane; choice < choices; choice += WARP) {
    u32 low = bases.low & k_bits & ~mask, high = bases.high & k_bits & ~mask, rest = choice;
    for (u32 places = mask; places; places &= places - 1, rest >>= 2) {
      const u32 place = places & (0 - places);
      if (rest & 1) low |= place;
      if (rest & 2) high |= place;
    }
    look_up(search, position, bases, low | high << k);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    find_seeds(Samples samples, Patterns patterns, Table table, Hits hits,
               const int4* __restrict__ limits) {
  const Search search = {samples, patterns, table, hits, limits};
  const u32 lane = threadIdx.x % WARP, k_bits = (1u << table.k) - 1;
  const u32 words = (samples.bases + 31) / 32, warps = gridDim.x * (blockDim.x / WARP);
  for (u32 word = (blockIdx.x * blockDim.x + threadIdx.x) / WARP; word < words; word += warps) {
    const uint4 a = samples.planes[word], b = samples.planes[word + 1];
    const u32 ambiguous[2] = {~single(a), ~single(b)};
    const u32 low[2] = {a.y | a.w, b.y | b.w}, high[2] = {a.z | a.w, b.z | b.w};
    const Bases own = bases_at(ambiguous, low, high, lane);
    const bool is_inside = word * 32 + lane + table.k <= samples.bases;
    const bool is_clean = !(own.ambiguous & k_bits);
    if (is_inside && is_clean)
      look_up(search, word * 32 + lane, own, (own.low & k_bits) | (own.high & k_bits) << table.k);
    // With STRICT only the one base of a seed that may be ambiguous matches such a base.
    const bool is_wanted =
        is_inside && !is_clean && (!STRICT || __popc(own.ambiguous & k_bits) == 1);
    for (u32 rest = __ballot_sync(FULL, is_wanted); rest; rest &= rest - 1) {
      const u32 shift = __ffs(rest) - 1;
      const Bases bases = bases_at(ambiguous, low, high, shift);
      try_choices(search, word * 32 + shift, bases, bases.ambiguous & k_bits);
    }
  }
}

// The search. Compiled for a stride (STRIDE), for the first or all hits (FIRST) and for the
// meaning of ambiguous bases in samples (STRICT: they must be subsets of the pattern's bases).

#include "planes.cuh"

constexpr u32 WARP = 32;
constexpr u32 FULL = ALL;
constexpr int NOTHING = -1;
constexpr u32 ALONE = 8;  // words that a lane compares by itself before the warp takes the rest

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
  const uint4* planes;   // every pattern from a word of its own
  const i64* words;      // [n + 1] its first word
  const int* lengths;    // [n]
  const int* anchors;    // [n] where comparing begins
  const uint4* anchor;   // [n] the 32 bases from there; behind the end everything matches
  u32 n, strands;
};

struct Samples {
  const uint4* planes;
  const i64* offsets;  // [records + 1]
  u32 records, bases;
  u32 limit;  // hits that begin here or later belong to somebody else
};

struct Index {
  u32* clean;  // filter of windows without blanks
  u32* blank;  // and with
  int* heads;  // the last entry of each bucket
  int2* entries;  // tag, the entry before in the bucket; entry = (seed * STRIDE + phase) * masks + m
  const u32* masks;
  const int* seeded;  // pattern of each seed
  u32 clean_shift, blank_shift, bucket_shift;
  u32 n_masks, n_seeded, k, blanks;
};

// All hits: a list. First hits: a table of (record, signature) whose values only fall, and of every
// record how many signatures it has and no less than their greatest start.
struct Hits {
  int4* list;  // record, pattern, start, 0
  u64* keys;
  u64* values;  // start * strands + strand
  u32* found;
  u32* greatest;
  u32* count;  // [0] hits; [1] set when there was no room
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
    if (samples.offsets[middle] <= position) low = middle; else high = middle;
  }
  return low;
}

__device__ __forceinline__ u64 pair_of(u32 record, u32 signature) {
  return (u64(record) << 32) | signature;
}

__device__ __forceinline__ u32 slot_of(u64 pair, u32 capacity) {
  return u32((pair * 0x9E3779B97F4A7C15ull) >> 32) & (capacity - 1);
}

// The least value known of a pair, EMPTY where there is none. May be out of date, then too high.
__device__ u64 best_of(const Hits& hits, u64 pair) {
  const volatile u64* keys = hits.keys;
  const volatile u64* values = hits.values;
  for (u32 slot = slot_of(pair, hits.capacity);; slot = (slot + 1) & (hits.capacity - 1)) {
    const u64 key = keys[slot];
    if (key == pair) return values[slot];
    if (key == EMPTY) return EMPTY;
  }
}

__device__ void keep_first(const Hits& hits, u32 record, u32 signature, u32 start, u64 value) {
  const u64 pair = pair_of(record, signature);
  for (u32 slot = slot_of(pair, hits.capacity);; slot = (slot + 1) & (hits.capacity - 1)) {
    if (hits.count[1]) return;
    const u64 key = atomicCAS(&hits.keys[slot], EMPTY, pair);
    if (key != EMPTY && key != pair) continue;
    atomicMin(&hits.values[slot], value);
    if (key == pair) return;
    if (atomicAdd(&hits.count[0], 1) >= hits.capacity / 2) hits.count[1] = 1;
    atomicMax(&hits.greatest[record], start);
    __threadfence();
    atomicAdd(&hits.found[record], 1);
    return;
  }
}

__device__ void keep(const Hits& hits, const Patterns& patterns, u32 record, u32 pattern,
                     u32 start) {
  if (FIRST) {
    const u64 value = u64(start) * patterns.strands + pattern % patterns.strands;
    keep_first(hits, record, pattern / patterns.strands, start, value);
  } else {
    const u32 place = atomicAdd(&hits.count[0], 1);
    if (place < hits.capacity) hits.list[place] = make_int4(record, pattern, start, 0);
    else hits.count[1] = 1;
  }
}

// Does word j of pattern p differ from the sample under it, when p begins at `start`?
__device__ __forceinline__ bool word_differs(const Samples& samples, const Patterns& patterns,
                                             u32 p, u32 start, u32 j) {
  return differ(window(samples.planes, start + 32 * j), patterns.planes[patterns.words[p] + j]);
}

// Whether pattern p may begin at `start` (-1 and less: before the first base) of some record.
__device__ bool inside(const Samples& samples, const Patterns& patterns, u32 p, int start,
                       u32& record) {
  if (start < 0 || u32(start) >= samples.limit) return false;
  if (u32(start) + patterns.lengths[p] > samples.bases) return false;
  record = record_of(samples, start);
  return start + patterns.lengths[p] <= samples.offsets[record + 1];
}

__device__ bool beaten(const Hits& hits, const Patterns& patterns, u32 record, u32 p, u32 start) {
  if (!FIRST) return false;
  const u64 best = best_of(hits, pair_of(record, p / patterns.strands));
  return best <= u64(start) * patterns.strands + p % patterns.strands;
}

// ---- the index -------------------------------------------------------------------------------

// Where comparing begins: the first clean run of `run` bases with enough different neighbours, else
// the one with the most; patterns without a run begin at the word with the most single bases.
extern "C" __global__ void place_anchors(Patterns patterns, u32 run, int* __restrict__ anchors,
                                         uint4* __restrict__ anchor) {
  const u32 p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= patterns.n) return;
  const uint4* planes = patterns.planes + patterns.words[p];
  const int enough = min(8, int(run) - 1);
  int best = -1, where = 0, clean = 0, densest = -1, densest_at = 0;
  u32 mask = 0;
  for (int i = 0; i < patterns.lengths[p] && best < enough; ++i) {
    if ((i & 31) == 0) {
      mask = single(planes[i >> 5]);
      if (__popc(mask) > densest) densest = __popc(mask), densest_at = i;
    }
    clean = (mask >> (i & 31)) & 1 ? clean + 1 : 0;
    if (clean < int(run)) continue;
    const uint4 seed = window(planes, i + 1 - run);
    const u32 low = seed.y | seed.w, high = seed.z | seed.w;
    u32 pairs = 0;
    for (u32 j = 0; j + 1 < run; ++j)
      pairs |= 1u << (((low >> j) & 3) | (((high >> j) & 3) << 2));
    if (__popc(pairs) > best) best = __popc(pairs), where = i + 1 - run;
  }
  anchors[p] = best >= 0 ? where : densest_at;
  anchor[p] = window(planes, anchors[p]);
}

// The anchor windows of some patterns side by side; four and more that match nothing end the list.
extern "C" __global__ void gather_anchors(Patterns patterns, const int* __restrict__ chosen,
                                          u32 n_chosen, u32 padded, uint4* __restrict__ out) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < padded) out[i] = i < n_chosen ? patterns.anchor[chosen[i]] : make_uint4(0, 0, 0, 0);
}

// One thread an entry.
extern "C" __global__ void fill_index(Patterns patterns, Index index) {
  const u32 total = index.n_seeded * STRIDE * index.n_masks;
  for (u32 e = blockIdx.x * blockDim.x + threadIdx.x; e < total; e += gridDim.x * blockDim.x) {
    const u32 mask = index.masks[e % index.n_masks];
    const u32 window = e / index.n_masks;
    const uint4 seed = patterns.anchor[index.seeded[window / STRIDE]];
    const u32 kept = ((1u << index.k) - 1) & ~mask;
    const u32 phase = window % STRIDE;
    const Hashed key = hashed({mask, ((seed.y | seed.w) >> phase) & kept,
                               ((seed.z | seed.w) >> phase) & kept});
    u32* filter = mask ? index.blank : index.clean;
    const u32 bit = key.place >> (mask ? index.blank_shift : index.clean_shift);
    atomicOr(&filter[bit >> 5], 1u << (bit & 31));
    const int before = atomicExch(&index.heads[key.place >> index.bucket_shift], int(e));
    index.entries[e] = make_int2(key.tag, before);
  }
}

// ---- the indexed way -------------------------------------------------------------------------

__device__ void follow(const Samples& samples, const Patterns& patterns, const Index& index,
                       const Hits& hits, Hashed key, u32 position) {
  for (int e = index.heads[key.place >> index.bucket_shift]; e != NOTHING;) {
    const int2 entry = index.entries[e];
    if (u32(entry.x) == key.tag) {
      const u32 window_of_seed = u32(e) / index.n_masks;
      const u32 p = index.seeded[window_of_seed / STRIDE];
      const int at = int(position) - int(window_of_seed % STRIDE);
      u32 record;
      if (at >= 0 && !differ(window(samples.planes, at), patterns.anchor[p]) &&
          inside(samples, patterns, p, at - patterns.anchors[p], record)) {
        const u32 start = at - patterns.anchors[p], begin = samples.offsets[record];
        bool same = !beaten(hits, patterns, record, p, start - begin);
        for (u32 j = 0; same && 32 * j < u32(patterns.lengths[p]); ++j)
          same = !word_differs(samples, patterns, p, start, j);
        if (same) keep(hits, patterns, record, p, start - begin);
      }
    }
    e = entry.y;
  }
}

// One thread looks up the windows of 32 positions, every STRIDE-th.
extern "C" __global__ void __launch_bounds__(256)
    probe(Samples samples, Patterns patterns, Index index, Hits hits) {
  const u32 k_bits = (1u << index.k) - 1;
  const u32 words = (samples.bases + 31) / 32;
  for (u32 word = blockIdx.x * blockDim.x + threadIdx.x; word < words;
       word += gridDim.x * blockDim.x) {
    const uint4 a = samples.planes[word], b = samples.planes[word + 1];
    const u32 low[2] = {a.y | a.w, b.y | b.w}, high[2] = {a.z | a.w, b.z | b.w};
    const u32 ambiguous[2] = {~single(a), ~single(b)};
    u32 candidates = 0;
#pragma unroll
    for (int i = 0; i < 32; i += STRIDE) {
      const u32 mask = __funnelshift_r(ambiguous[0], ambiguous[1], i) & k_bits;
      const u32 kept = k_bits & ~mask;
      const Hashed key = hashed({mask, __funnelshift_r(low[0], low[1], i) & kept,
                                 __funnelshift_r(high[0], high[1], i) & kept});
      u32 set = 0;
      if (!mask || (!STRICT && __popc(mask) <= index.blanks)) {
        const u32* filter = mask ? index.blank : index.clean;
        const u32 bit = key.place >> (mask ? index.blank_shift : index.clean_shift);
        set = (__ldg(&filter[bit >> 5]) >> (bit & 31)) & 1;
      }
      candidates |= set << i;
    }
    for (; candidates; candidates &= candidates - 1) {
      const u32 i = __ffs(candidates) - 1;
      const u32 mask = __funnelshift_r(ambiguous[0], ambiguous[1], i) & k_bits;
      const u32 kept = k_bits & ~mask;
      const Hashed key = hashed({mask, __funnelshift_r(low[0], low[1], i) & kept,
                                 __funnelshift_r(high[0], high[1], i) & kept});
      follow(samples, patterns, index, hits, key, word * 32 + i);
    }
  }
}

// ---- the direct way --------------------------------------------------------------------------

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

// The lanes in `matching` agree with pattern p in the anchor's 32 bases; compares the rest.
__device__ void finish(const Samples& samples, const Patterns& patterns, const Hits& hits, u32 p,
                       int start, bool matching) {
  const u32 lane = threadIdx.x % WARP;
  const u32 words = (patterns.lengths[p] + 31) / 32;
  u32 record = 0;
  matching = matching && inside(samples, patterns, p, start, record);
  const u32 begin = matching ? u32(samples.offsets[record]) : 0;
  matching = matching && !beaten(hits, patterns, record, p, start - begin);
  for (u32 j = 0; matching && j < min(words, ALONE); ++j)
    matching = !word_differs(samples, patterns, p, start, j);
  for (u32 left = __ballot_sync(FULL, matching); left; left &= left - 1) {
    const u32 chosen = __ffs(left) - 1;  // the lowest first: in its record it beats the others
    const u32 its_start = __shfl_sync(FULL, u32(start), chosen);
    const u32 its_record = __shfl_sync(FULL, record, chosen);
    const u32 within = its_start - __shfl_sync(FULL, begin, chosen);
    if (__any_sync(FULL, lane == chosen && beaten(hits, patterns, record, p, within))) continue;
    bool differs = false;
    for (u32 j = ALONE; j < words; j += WARP) {
      if (j + lane < words)
        differs = word_differs(samples, patterns, p, its_start, j + lane);
      if (__any_sync(FULL, differs)) break;
    }
    if (!__any_sync(FULL, differs) && lane == chosen)
      keep(hits, patterns, its_record, p, within);
    __syncwarp();
  }
}

// 32 positions, one a lane (or ALL: none), against the anchors of `chosen`.
__device__ void compare(const Samples& samples, const Patterns& patterns, const Hits& hits,
                        const int* __restrict__ chosen, const uint4* __restrict__ anchor,
                        u32 n_padded, u32 position, u32 max_anchor) {
  bool active = position != ALL;
  if (FIRST && active) active = !settled(samples, patterns, hits, position, max_anchor);
  if (!__any_sync(FULL, active)) return;
  const uint4 s = active ? window(samples.planes, position) : make_uint4(0, 0, 0, 0);
  for (u32 i = 0; i < n_padded; i += 4) {
    u32 same = 0;
#pragma unroll
    for (u32 j = 0; j < 4; ++j) same |= u32(differ(s, __ldg(&anchor[i + j])) == 0) << j;
    if (!active) same = 0;
    if (!__any_sync(FULL, same)) continue;
    for (u32 j = 0; j < 4; ++j) {
      const bool matching = (same >> j) & 1;
      if (!__any_sync(FULL, matching)) continue;
      const u32 p = chosen[i + j];
      finish(samples, patterns, hits, p, int(position) - patterns.anchors[p], matching);
    }
  }
}

// Is the window that should find position `i` (0..31) of a word too ambiguous for the index?
__device__ __forceinline__ bool dense(const u32 ambiguous[3], u32 i, u32 k_bits, u32 blanks) {
  const u32 at = (i + STRIDE - 1) / STRIDE * STRIDE;
  const u32 mask = at < 32 ? __funnelshift_r(ambiguous[0], ambiguous[1], at)
                           : __funnelshift_r(ambiguous[1], ambiguous[2], at - 32);
  return __popc(mask & k_bits) > blanks;
}

// A warp goes through 1,024 positions at a time, collects those to compare (`every` one, or the
// dense ones) and compares 32 together.
extern "C" __global__ void __launch_bounds__(256)
    direct(Samples samples, Patterns patterns, Hits hits, const int* __restrict__ chosen,
           const uint4* __restrict__ anchor, u32 n_padded, u32 k, u32 blanks, u32 every,
           u32 max_anchor) {
  __shared__ u32 queues[256 / WARP][2 * WARP];
  u32* queue = queues[threadIdx.x / WARP];
  const u32 lane = threadIdx.x % WARP;
  const u32 k_bits = (1u << k) - 1;
  const u32 words = (samples.bases + 31) / 32;
  const u32 warps = gridDim.x * (blockDim.x / WARP);
  u32 waiting = 0;
  for (u32 tile = (blockIdx.x * blockDim.x + threadIdx.x) / WARP * WARP; tile < words;
       tile += warps * WARP) {
    for (u32 word = tile; word < min(tile + WARP, words); ++word) {
      const u32 position = word * 32 + lane;
      u32 ambiguous[3];
      for (u32 i = 0; i < 3; ++i) ambiguous[i] = ~single(samples.planes[word + i]);
      const bool wanted =
          position < samples.bases && (every || dense(ambiguous, lane, k_bits, blanks));
      const u32 all = __ballot_sync(FULL, wanted);
      if (wanted) queue[waiting + __popc(all & ((1u << lane) - 1))] = position;
      waiting += __popc(all);
      __syncwarp();
      if (waiting < WARP) continue;
      compare(samples, patterns, hits, chosen, anchor, n_padded, queue[lane], max_anchor);
      waiting -= WARP;
      const u32 kept = queue[WARP + lane];
      __syncwarp();
      if (lane < waiting) queue[lane] = kept;
      __syncwarp();
    }
  }
  if (waiting)
    compare(samples, patterns, hits, chosen, anchor, n_padded, lane < waiting ? queue[lane] : ALL,
            max_anchor);
}

// ---- results ---------------------------------------------------------------------------------

// The table's pairs as a list: record, pattern, start. `collected` counts them.
extern "C" __global__ void collect(Hits hits, u32 strands, u32* collected) {
  for (u32 slot = blockIdx.x * blockDim.x + threadIdx.x; slot < hits.capacity;
       slot += gridDim.x * blockDim.x) {
    const u64 pair = hits.keys[slot];
    if (pair == EMPTY) continue;
    const u64 value = hits.values[slot];
    const u32 place = atomicAdd(collected, 1);
    hits.list[place] = make_int4(int(pair >> 32), int(u32(pair) * strands + value % strands),
                                 int(value / strands), 0);
  }
}

// Tracks lie one after the other in x; track t is x[offsets[t] .. offsets[t + 1]). Below: what the
// threads of a block, or of a warp, do together: sums, in the order that kernels/numerics/sums.py
// keeps to, and the k-th smallest of many.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

constexpr u32 WARP = 32, FULL = ~0u;
constexpr u32 DIGIT = 8, BINS = 1u << DIGIT;  // bits of a key that one pass of a selection looks at
constexpr double LARGEST = 1.7976931348623157e308;
constexpr u32 MOST_THREADS = 256;  // but for blocks that work on one track or span

struct Track {  // what `look` finds
  double variance;
  u32 odd;  // whether a value is not finite
};

struct Values {
  const double* x;
  __device__ double operator()(i64 i) const { return x[i]; }
};

// The track that holds a position: the last that begins there or before.
__device__ u32 track_of(const i64* offsets, u32 tracks, i64 position) {
  u32 low = 0, high = tracks;
  while (high - low > 1) {
    const u32 middle = (low + high) / 2;
    if (offsets[middle] <= position) low = middle;
    else high = middle;
  }
  return low;
}

struct Room {  // shared memory of a block
  double sums[WARP];
  u32 bins[BINS];
  u64 prefix, next;
  i64 rank;
  u32 equal;
};

__device__ double from_lane(double value, u32 lane) {
  const u64 bits = __double_as_longlong(value);
  const u64 low = __shfl_sync(FULL, u32(bits), lane),
            high = __shfl_sync(FULL, u32(bits >> 32), lane);
  return __longlong_as_double((high << 32) | low);
}

// The same in every lane.
__device__ double warp_sum(double value) {
  for (u32 step = WARP / 2; step; step /= 2) value += from_lane(value, (threadIdx.x ^ step) % WARP);
  return value;
}

// The same in every thread.
__device__ double block_sum(double value, Room& room) {
  value = warp_sum(value);
  if (threadIdx.x % WARP == 0) room.sums[threadIdx.x / WARP] = value;
  __syncthreads();
  double total = 0.0;
  for (u32 warp = 0; warp < blockDim.x / WARP; ++warp) total += room.sums[warp];
  __syncthreads();
  return total;
}

// Ordered as the numbers are; 0.0 and -0.0 are the same number.
__device__ u64 key_of(double value) {
  const u64 bits = __double_as_longlong(value + 0.0);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ double value_of(u64 key) {
  return __longlong_as_double(key >> 63 ? key & ~(1ull << 63) : ~key);
}

// How many of the values that agree with `prefix` above `shift` have which next digit.
template <class Values>
__device__ void count_digits(const Values& values, i64 n, u64 prefix, u32 shift, Room& room) {
  const u64 known = shift + DIGIT < 64 ? ~0ull << (shift + DIGIT) : 0;
  for (u32 bin = threadIdx.x; bin < BINS; bin += blockDim.x) room.bins[bin] = 0;
  __syncthreads();
  const i64 padded = (n + WARP - 1) / WARP * WARP;  // whole warps, which meet
  for (i64 i = threadIdx.x; i < padded; i += blockDim.x) {
    const u64 key = i < n ? key_of(values(i)) : 0;
    const bool counts = i < n && (key & known) == prefix;
    const u32 digit = (key >> shift) % BINS;
    // Many values may be equal: those that agree with the warp's first are added at once.
    const u32 common = __shfl_sync(FULL, digit, 0);
    const u32 same = __ballot_sync(FULL, counts && digit == common);
    if (threadIdx.x % WARP == 0 && same) atomicAdd(&room.bins[common], u32(__popc(same)));
    if (counts && digit != common) atomicAdd(&room.bins[digit], 1u);
  }
  __syncthreads();
}

// The value of this rank (0: the smallest) of n; room.rank and room.equal become its rank among
// equal values, and how many they are. The same in every thread.
template <class Values>
__device__ double selected(const Values& values, i64 n, i64 rank, Room& room) {
  if (threadIdx.x == 0) {
    room.prefix = 0;
    room.rank = rank;
  }
  __syncthreads();
  for (u32 shift = 64 - DIGIT;; shift -= DIGIT) {
    count_digits(values, n, room.prefix, shift, room);
    if (threadIdx.x == 0) {
      u32 digit = 0;
      for (; room.rank >= room.bins[digit]; ++digit) room.rank -= room.bins[digit];
      room.prefix |= u64(digit) << shift;
      room.equal = room.bins[digit];
    }
    __syncthreads();
    if (!shift) return value_of(room.prefix);
  }
}

// The smallest value above one that is not the largest; the same in every thread.
template <class Values>
__device__ double next_above(const Values& values, i64 n, double value, Room& room) {
  if (threadIdx.x == 0) room.next = ~0ull;
  __syncthreads();
  const u64 least = key_of(value);
  u64 next = ~0ull;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    const u64 key = key_of(values(i));
    if (key > least && key < next) next = key;
  }
  atomicMin(&room.next, next);
  __syncthreads();
  return value_of(room.next);
}

// R's quantile of type 7 of n > 0 values; the same in every thread.
template <class Values>
__device__ double quantile(const Values& values, i64 n, double share, Room& room) {
  const double place = double(n - 1) * share;
  const i64 low = i64(place);
  const double part = place - double(low), below = selected(values, n, low, room);
  const bool repeated = room.rank + 1 < room.equal;
  __syncthreads();
  if (part == 0.0 || repeated) return below;
  return (1.0 - part) * below + part * next_above(values, n, below, room);
}

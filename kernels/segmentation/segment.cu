// The fast segmentation. Tracks lie one after the other in x; track t is x[offsets[t] .. offsets[t + 1]).
// Compiled without fused multiply-add, so that sums are those of the CPU.

#include "block.cuh"
#include "student.cuh"

constexpr double LEAST_VARIANCE = 1e-15;
constexpr double LARGEST = 1.7976931348623157e308;
constexpr u32 TILE = 128;    // values of a running sum that are written at once
constexpr u32 SHORT = 128;   // values of a span that one warp describes
constexpr u32 MOST_THREADS = 256;
constexpr u32 POSITIONS = 4;  // of each thread in a search

enum What { DIFFERENCES, VALUES };
enum Kind { GAIN, LOSS, NEITHER };

struct Track {  // what `look` finds
  double low, high, variance;
  u32 infinite, nan;
};

struct Values {
  const double* x;
  __device__ double operator()(i64 i) const { return x[i]; }
};

struct Differences {
  const double* x;
  __device__ double operator()(i64 i) const { return fabs(x[i + 1] - x[i]); }
};

// The track that holds a position: the last that begins there or before.
__device__ u32 track_of(const i64* offsets, u32 tracks, i64 position) {
  u32 low = 0, high = tracks;
  while (high - low > 1) {
    const u32 middle = (low + high) / 2;
    if (offsets[middle] <= position) low = middle; else high = middle;
  }
  return low;
}

// Range, variance and oddities of each track; `out` is zero before. One block a track.
extern "C" __global__ void __launch_bounds__(1024)
    look(const double* __restrict__ x, const i64* __restrict__ offsets,
                                Track* __restrict__ out) {
  __shared__ Room room;
  __shared__ u64 range[2];
  const i64 begin = offsets[blockIdx.x], n = offsets[blockIdx.x + 1] - begin;
  if (threadIdx.x == 0) {
    range[0] = key_of(LARGEST);
    range[1] = key_of(-LARGEST);
  }
  __syncthreads();
  double total = 0.0, low = LARGEST, high = -LARGEST;
  u32 infinite = 0, nan = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    const double value = x[begin + i];
    if (value != value) nan = 1;
    else if (fabs(value) > LARGEST) infinite = 1;
    else low = min(low, value), high = max(high, value);
    total += value;
  }
  atomicMin(&range[0], key_of(low));
  atomicMax(&range[1], key_of(high));
  if (nan) atomicOr(&out[blockIdx.x].nan, 1u);
  if (infinite) atomicOr(&out[blockIdx.x].infinite, 1u);
  const double mean = block_sum(total, room) / double(n);
  double squares = 0.0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x)
    squares += (x[begin + i] - mean) * (x[begin + i] - mean);
  squares = block_sum(squares, room);
  if (threadIdx.x == 0) {
    out[blockIdx.x].low = value_of(range[0]);
    out[blockIdx.x].high = value_of(range[1]);
    out[blockIdx.x].variance = squares / double(n - 1);
  }
}

// 0 for NaN, the largest or smallest finite value of the track for infinite ones. One block a track.
extern "C" __global__ void __launch_bounds__(1024)
    clean(const double* __restrict__ x, const i64* __restrict__ offsets,
                                 const Track* __restrict__ tracks, double* __restrict__ out) {
  const Track track = tracks[blockIdx.x];
  for (i64 i = offsets[blockIdx.x] + threadIdx.x; i < offsets[blockIdx.x + 1]; i += blockDim.x) {
    const double value = x[i];
    if (value != value) out[i] = 0.0;
    else out[i] = value > LARGEST ? track.high : value < -LARGEST ? track.low : value;
  }
}

// A quantile of each track's values, or of the differences of neighbours. One block a track.
extern "C" __global__ void __launch_bounds__(1024)
    quantiles(const double* __restrict__ x, const i64* __restrict__ offsets,
                                     u32 what, double share, double* __restrict__ out) {
  __shared__ Room room;
  const double* mine = x + offsets[blockIdx.x];
  const i64 n = offsets[blockIdx.x + 1] - offsets[blockIdx.x] - (what == DIFFERENCES);
  if (n < 1) return;
  const double found = what == DIFFERENCES ? quantile(Differences{mine}, n, share, room)
                                           : quantile(Values{mine}, n, share, room);
  if (threadIdx.x == 0) out[blockIdx.x] = found;
}

// Running sums of x and x², one longer than the track, each value added to all before it as in a
// sequential program. One warp a track: two lanes add, the others fetch and write.
extern "C" __global__ void sum_up(const double* __restrict__ x, const i64* __restrict__ offsets,
                                  double* __restrict__ sums, double* __restrict__ squares) {
  __shared__ double tile[TILE], added[2][TILE];
  const u32 lane = threadIdx.x;
  const i64 begin = offsets[blockIdx.x], n = offsets[blockIdx.x + 1] - begin;
  double* const out[2] = {sums + begin + blockIdx.x, squares + begin + blockIdx.x};
  if (lane < 2) out[lane][0] = 0.0;
  double total = 0.0, next[TILE / WARP];
  for (u32 k = 0; k < TILE / WARP; ++k) {
    const i64 i = lane + k * WARP;
    next[k] = i < n ? x[begin + i] : 0.0;
  }
  for (i64 first = 0; first < n; first += TILE) {
    for (u32 k = 0; k < TILE / WARP; ++k) tile[lane + k * WARP] = next[k];
    __syncwarp();
    for (u32 k = 0; k < TILE / WARP; ++k) {
      const i64 i = first + TILE + lane + k * WARP;
      next[k] = i < n ? x[begin + i] : 0.0;
    }
    if (lane < 2) {
      for (u32 k = 0; k < TILE; ++k) {
        total += lane ? tile[k] * tile[k] : tile[k];
        added[lane][k] = total;
      }
    }
    __syncwarp();
    for (u32 k = lane; k < TILE && first + k < n; k += WARP) {
      out[0][first + k + 1] = added[0][k];
      out[1][first + k + 1] = added[1][k];
    }
    __syncwarp();
  }
}

struct Search {
  const double* x;
  const double* sums;
  const double* squares;
  const i64* offsets;
  const Track* tracks;
  const double* eps;
  i64 total;
  double weight;
  u32 n_tracks;
  int shortest, largest, delta;
};

// Welch's test between the `size` values up to position i and those behind it; i is of the track
// whose running sums these are.
__device__ Test tested(const double* sums, const double* squares, i64 i, int size, double prior,
                       double weight) {
  const double n = size, freedom = n + (weight - 2.0), scale = 1.0 / (freedom * (freedom + 1.0));
  const double left_sum = sums[i + 1] - sums[i + 1 - size];
  const double right_sum = sums[i + 1 + size] - sums[i + 1];
  const double left_mean = left_sum / n, right_mean = right_sum / n;
  const double left = squares[i + 1] - squares[i + 1 - size] - left_sum * left_mean;
  const double right = squares[i + 1 + size] - squares[i + 1] - right_sum * right_mean;
  const double a = (prior + left) * scale, b = (prior + right) * scale;
  const double both = a + b, gap = left_mean - right_mean;
  return {gap * gap / (both + LEAST_VARIANCE), freedom * (both * both) / (a * a + b * b)};
}

// The surprise at position i of a track of n values: the greatest of growing windows, up to where
// more than `delta` in a row gained nothing.
__device__ double searched(const Search& search, u32 track, i64 i, i64 n) {
  const double* sums = search.sums + search.offsets[track] + track;
  const double* squares = search.squares + search.offsets[track] + track;
  const double prior = search.weight * max(LEAST_VARIANCE, search.tracks[track].variance);
  const i64 largest = min(i64(search.largest), min(i - 1, n - 2 - i));
  Test last = tested(sums, squares, i, search.shortest + 1, prior, search.weight), best = last;
  int flat = 0;
  for (int window = search.shortest + 1; window <= largest && flat <= search.delta; ++window) {
    const Test now = tested(sums, squares, i, window + 1, prior, search.weight);
    flat = exceeds(now, last) ? 0 : flat + 1;
    if (!flat && exceeds(now, best)) best = now;
    last = now;
  }
  return surprise(best.t2, best.df);
}

// The statistic at every position whose neighbours differ enough, 0 elsewhere. The positions of a
// block that are searched are gathered first, so that all lanes have work.
extern "C" __global__ void __launch_bounds__(256) find(Search search, double* __restrict__ out) {
  __shared__ u32 listed[POSITIONS * MOST_THREADS], count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  const i64 first = i64(blockIdx.x) * (POSITIONS * blockDim.x);
  for (u32 k = threadIdx.x; k < POSITIONS * blockDim.x && first + k < search.total;
       k += blockDim.x) {
    const i64 position = first + k;
    const u32 track = track_of(search.offsets, search.n_tracks, position);
    const i64 i = position - search.offsets[track];
    const i64 n = search.offsets[track + 1] - search.offsets[track];
    if (i <= search.shortest || i >= n - search.shortest - 1 ||
        !(fabs(search.x[position + 1] - search.x[position]) > search.eps[track]))
      out[position] = 0.0;
    else
      listed[atomicAdd(&count, 1u)] = k;
  }
  __syncthreads();
  for (u32 k = threadIdx.x; k < count; k += blockDim.x) {
    const i64 position = first + listed[k];
    const u32 track = track_of(search.offsets, search.n_tracks, position);
    const i64 begin = search.offsets[track];
    out[position] = searched(search, track, position - begin, search.offsets[track + 1] - begin);
  }
}

// Without those that a neighbour exceeds; near the ends of a track all are kept.
extern "C" __global__ void maxima(const double* __restrict__ values, const i64* __restrict__ offsets,
                                  u32 tracks, i64 total, int reach, double* __restrict__ out) {
  const i64 position = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (position >= total) return;
  const double value = values[position];
  double largest = value;
  if (value > 0.0) {
    const u32 track = track_of(offsets, tracks, position);
    if (position - offsets[track] >= reach && offsets[track + 1] - position > reach)
      for (int k = -reach; k <= reach; ++k) largest = max(largest, values[position + k]);
  }
  out[position] = value == largest ? value : 0.0;
}

// Marks where pieces begin: the tracks' first positions, and those behind values above the track's
// threshold. `out` is zero before.
extern "C" __global__ void mark_above(const double* __restrict__ values,
                                      const i64* __restrict__ offsets, u32 tracks, i64 total,
                                      const double* __restrict__ thresholds,
                                      unsigned char* __restrict__ out) {
  const i64 position = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (position >= total) return;
  const u32 track = track_of(offsets, tracks, position);
  if (position == offsets[track]) out[position] = 1;
  if (position + 1 < offsets[track + 1] && values[position] > thresholds[track])
    out[position + 1] = 1;
}

// The same behind the `wanted` largest of each track; of equal values the first. One warp a track.
extern "C" __global__ void mark_largest(const double* __restrict__ values,
                                        const i64* __restrict__ offsets, i64 wanted,
                                        unsigned char* __restrict__ out) {
  __shared__ Room room;
  const i64 begin = offsets[blockIdx.x], n = offsets[blockIdx.x + 1] - begin;
  if (!n) return;
  const i64 rank = n - min(n, wanted);
  const double least = selected(Values{values + begin}, n, rank, room);
  i64 ties = i64(room.equal) - room.rank;  // that are among the largest
  for (i64 first = 0; first < n; first += WARP) {
    const i64 i = first + threadIdx.x;
    const double value = i < n ? values[begin + i] : -LARGEST;
    const u32 equal = __ballot_sync(FULL, i < n && value == least);
    const i64 before = __popc(equal & ((1u << threadIdx.x) - 1));
    if (i == 0) out[begin] = 1;
    if (i + 1 < n && (value > least || (value == least && before < ties))) out[begin + i + 1] = 1;
    ties -= min(ties, i64(__popc(equal)));
  }
}

// Mean and median of spans, one warp each; longer ones are listed for `describe_long`.
extern "C" __global__ void __launch_bounds__(256)
    describe(const double* __restrict__ x, const i64* __restrict__ start,
             const i64* __restrict__ end, i64 spans, double* __restrict__ mean,
             double* __restrict__ median, i64* __restrict__ listed, u64* __restrict__ n_listed) {
  __shared__ double held[MOST_THREADS / WARP][SHORT];
  const u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  const i64 span = i64(blockIdx.x) * (blockDim.x / WARP) + warp;
  if (span >= spans) return;
  const i64 n = end[span] - start[span];
  if (n > SHORT) {
    if (lane == 0) listed[atomicAdd(n_listed, 1ull)] = span;
    return;
  }
  double* values = held[warp];
  double total = 0.0, rest = 0.0;
  for (i64 i = lane; i < n; i += WARP) total += values[i] = x[start[span] + i];
  __syncwarp();
  const double average = warp_sum(total) / double(n);
  double middle = 0.0;  // this lane's part of the median
  for (i64 i = lane; i < n; i += WARP) {
    i64 rank = 0;
    for (i64 k = 0; k < n; ++k)
      rank += values[k] < values[i] || (values[k] == values[i] && k < i);
    middle += (rank == (n - 1) / 2 ? 0.5 * values[i] : 0.0) + (rank == n / 2 ? 0.5 * values[i] : 0.0);
    rest += values[i] - average;
  }
  middle = warp_sum(middle);
  rest = warp_sum(rest);
  if (lane) return;
  mean[span] = average + rest / double(n);
  median[span] = middle;
}

// The same of the listed spans, one block each.
extern "C" __global__ void __launch_bounds__(1024)
    describe_long(const double* __restrict__ x, const i64* __restrict__ start,
                                         const i64* __restrict__ end, double* __restrict__ mean,
                                         double* __restrict__ median,
                                         const i64* __restrict__ listed,
                                         const u64* __restrict__ n_listed) {
  __shared__ Room room;
  for (u64 k = blockIdx.x; k < *n_listed; k += gridDim.x) {
    const i64 span = listed[k], n = end[span] - start[span];
    const Values values{x + start[span]};
    double total = 0.0, rest = 0.0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) total += values(i);
    const double average = block_sum(total, room) / double(n);
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) rest += values(i) - average;
    rest = block_sum(rest, room);
    const double middle = quantile(values, n, 0.5, room);
    if (threadIdx.x == 0) {
      mean[span] = average + rest / double(n);
      median[span] = middle;
    }
  }
}

struct Thresholds {  // of gains and losses; not given: twice each track's standard deviation
  double upper, lower;
  u32 given;
};

__device__ Thresholds thresholds_of(Thresholds all, const Track& track) {
  const double spread = 2.0 * sqrt(track.variance);
  return all.given ? all : Thresholds{spread, -spread, 1};
}

__device__ bool nothing_merges(Thresholds thresholds) {
  return thresholds.upper == 0.0 && thresholds.lower == 0.0;
}

__device__ Kind kind_of(double median, Thresholds thresholds) {
  if (nothing_merges(thresholds)) return GAIN;
  return median > thresholds.upper ? GAIN : median < thresholds.lower ? LOSS : NEITHER;
}

// Marks the pieces that are of another kind than the one before, or begin a track; where both
// thresholds are 0, all. `out` is zero before.
extern "C" __global__ void mark_runs(const i64* __restrict__ edges, i64 pieces,
                                     const double* __restrict__ medians,
                                     const i64* __restrict__ offsets,
                                     const Track* __restrict__ looks, u32 tracks, Thresholds all,
                                     unsigned char* __restrict__ out) {
  const i64 piece = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (piece >= pieces) return;
  const u32 track = track_of(offsets, tracks, edges[piece]);
  const Thresholds mine = thresholds_of(all, looks[track]);
  if (edges[piece] == offsets[track] || nothing_merges(mine) ||
      kind_of(medians[piece], mine) != kind_of(medians[piece - 1], mine))
    out[piece] = 1;
}

struct Runs {  // run k is of the pieces from first[k] on, and begins at edges[first[k]]
  const i64* edges;
  const i64* first;
  const double* medians;
  i64 n;

  __device__ i64 begin(i64 k) const { return edges[first[k]]; }

  // The first run that does not begin before a position.
  __device__ i64 from(i64 position) const {
    i64 low = 0, high = n;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (begin(middle) < position) low = middle + 1; else high = middle;
    }
    return low;
  }
};

// Runs to segments: those of gains and losses that are long enough, and what lies between. First for
// the number of each track, `counting`; then the segments themselves from `place` on. One thread a track.
extern "C" __global__ void merge(Runs runs, const i64* __restrict__ offsets,
                                 const Track* __restrict__ looks, u32 tracks, Thresholds all,
                                 int shortest, u32 counting, const i64* place, i64* counts,
                                 i64* start, i64* end) {
  const u32 track = blockIdx.x * blockDim.x + threadIdx.x;
  if (track >= tracks) return;
  const Thresholds mine = thresholds_of(all, looks[track]);
  i64 reached = offsets[track], count = 0;
  const auto put = [&](i64 from, i64 to) {
    if (from == to) return;
    if (!counting) {
      start[place[track] + count] = from;
      end[place[track] + count] = to;
    }
    ++count;
    reached = to;
  };
  const i64 stop = runs.from(offsets[track + 1]);
  for (i64 k = runs.from(offsets[track]); k < stop; ++k) {
    const i64 from = runs.begin(k), to = runs.begin(k + 1);
    if (kind_of(runs.medians[runs.first[k]], mine) == NEITHER || to - from < shortest) continue;
    put(reached, from);
    put(from, to);
  }
  put(reached, offsets[track + 1]);
  if (counting) counts[track] = count;
}

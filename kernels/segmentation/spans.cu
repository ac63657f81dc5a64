// From the statistic to segments: pieces between breaks, runs of pieces, and what lies between.
// Compiled without fused multiply-add, so that means are those of the CPU.

#include "tracks.cuh"

constexpr u32 SHORT = 128;  // values of a span that one warp describes

enum Kind { GAIN, LOSS, NEITHER };

// Marks where pieces begin: the tracks' first positions, and those after values above the track's
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
  double below = 0.0, above = 0.0;  // the middle values, where this lane has them
  for (i64 i = lane; i < n; i += WARP) {
    i64 rank = 0;
    for (i64 k = 0; k < n; ++k) rank += values[k] < values[i] || (values[k] == values[i] && k < i);
    if (rank == (n - 1) / 2) below = values[i];
    if (rank == n / 2) above = values[i];
    rest += values[i] - average;
  }
  below = warp_sum(below);
  above = warp_sum(above);
  rest = warp_sum(rest);
  if (lane) return;
  mean[span] = average + rest / double(n);
  median[span] = below == above ? below : 0.5 * below + 0.5 * above;
}

// The same of the listed spans, one block each.
extern "C" __global__ void __launch_bounds__(1024)
    describe_long(const double* __restrict__ x, const i64* __restrict__ start,
                  const i64* __restrict__ end, double* __restrict__ mean,
                  double* __restrict__ median, const i64* __restrict__ listed,
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
      if (begin(middle) < position) low = middle + 1;
      else high = middle;
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

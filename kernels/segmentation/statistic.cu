// The statistic of the fast segmentation: for every position how clearly a segment ends there.
// Compiled without fused multiply-add, so that sums are those of the CPU.

#include "../numerics/student.cuh"
#include "tracks.cuh"

constexpr double LEAST_VARIANCE = 1e-15;
constexpr u32 TILE = 128;     // values of a running sum that are written at once
constexpr u32 BATCH = 16;     // of these, what a lane holds while it adds
constexpr u32 POSITIONS = 4;  // of each thread in a search

enum What { DIFFERENCES, VALUES };

struct Differences {
  const double* x;
  __device__ double operator()(i64 i) const { return fabs(x[i + 1] - x[i]); }
};

// The variance of each track, and whether all of it is finite; `out` is zero before. One block a track.
extern "C" __global__ void __launch_bounds__(1024)
    look(const double* __restrict__ x, const i64* __restrict__ offsets, Track* __restrict__ out) {
  __shared__ Room room;
  const i64 begin = offsets[blockIdx.x], n = offsets[blockIdx.x + 1] - begin;
  double total = 0.0;
  u32 odd = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    odd |= !(fabs(x[begin + i]) <= LARGEST);
    total += x[begin + i];
  }
  if (odd) atomicOr(&out[blockIdx.x].odd, 1u);
  const double mean = block_sum(total, room) / double(n);
  double squares = 0.0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x)
    squares += (x[begin + i] - mean) * (x[begin + i] - mean);
  squares = block_sum(squares, room);
  if (threadIdx.x == 0) out[blockIdx.x].variance = squares / double(n - 1);
}

// A quantile of each track's values, or of the differences of neighbours. One block a track.
extern "C" __global__ void __launch_bounds__(1024)
    quantiles(const double* __restrict__ x, const i64* __restrict__ offsets, u32 what, double share,
              double* __restrict__ out) {
  __shared__ Room room;
  const double* mine = x + offsets[blockIdx.x];
  const i64 n = offsets[blockIdx.x + 1] - offsets[blockIdx.x] - (what == DIFFERENCES);
  if (n < 1) return;
  const double found = what == DIFFERENCES ? quantile(Differences{mine}, n, share, room)
                                           : quantile(Values{mine}, n, share, room);
  if (threadIdx.x == 0) out[blockIdx.x] = found;
}

// out[k] = total + tile[0] + ... + tile[k], one after the other; returns the last. Values come to
// registers a batch ahead, so that nothing but the additions themselves has to be waited for.
__device__ __forceinline__ double add_up(const double* tile, double total, double* out) {
  double held[BATCH], ahead[BATCH];
#pragma unroll
  for (u32 k = 0; k < BATCH; ++k) held[k] = tile[k];
#pragma unroll
  for (u32 first = 0; first < TILE; first += BATCH) {
#pragma unroll
    for (u32 k = 0; k < BATCH; ++k) ahead[k] = tile[(first + BATCH + k) % TILE];
#pragma unroll
    for (u32 k = 0; k < BATCH; ++k) out[first + k] = total += held[k];
#pragma unroll
    for (u32 k = 0; k < BATCH; ++k) held[k] = ahead[k];
  }
  return total;
}

// Running sums of x and x², one longer than the track, each value added to all before it as in a
// sequential program. One warp a track: two lanes add, the others fetch and write.
extern "C" __global__ void sum_up(const double* __restrict__ x, const i64* __restrict__ offsets,
                                  double* __restrict__ sums, double* __restrict__ squares) {
  __shared__ double tile[2][TILE], added[2][TILE];
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
    for (u32 k = 0; k < TILE / WARP; ++k) {
      tile[0][lane + k * WARP] = next[k];
      tile[1][lane + k * WARP] = next[k] * next[k];
    }
    __syncwarp();
    for (u32 k = 0; k < TILE / WARP; ++k) {
      const i64 i = first + TILE + lane + k * WARP;
      next[k] = i < n ? x[begin + i] : 0.0;
    }
    if (lane < 2) total = add_up(tile[lane], total, added[lane]);
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

// Welch's test between the `size` values up to position i and those after it; i is of the track
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
    else listed[atomicAdd(&count, 1u)] = k;
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
extern "C" __global__ void maxima(const double* __restrict__ values,
                                  const i64* __restrict__ offsets, u32 tracks, i64 total, int reach,
                                  double* __restrict__ out) {
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

// Sums over a team that works on one region: TEAM neighbouring lanes of a warp, or all of a block.

#include "../numerics/exact_sums.cuh"

constexpr unsigned FULL = 0xFFFFFFFFu;
constexpr int WIDTH = TEAM < 32 ? TEAM : 32;  // a team's lanes in a warp
constexpr int WARPS = TEAM / WIDTH;           // of a team

__shared__ ExactSum brought[WARPS > 1 ? TEAM : 1];

__device__ __forceinline__ double of_lane(double value, int lane) {
  return __shfl_sync(FULL, value, lane, WIDTH);
}

template <class T>
__device__ __forceinline__ T across(T value, int step) {
  return __shfl_xor_sync(FULL, value, step, WIDTH);
}

__device__ __forceinline__ ExactSum across(const ExactSum& sum, int step) {
  return {across(sum.value, step), across(sum.left_out, step)};
}

// What this lane has in the warps of its team, WIDTH apart.
template <class T>
__device__ __forceinline__ const T* of_warps(const T& value) {
  T* values = reinterpret_cast<T*>(brought);
  __syncthreads();  // until all have read what was there
  values[threadIdx.x] = value;
  __syncthreads();
  return values + threadIdx.x % WIDTH;
}

// Neighbours are joined, then neighbouring pairs, and so on, for every one of the lanes.
template <int LANES, class T, class Join>
__device__ __forceinline__ T joined(T value, Join join) {
#pragma unroll
  for (int step = 1; step < LANES; step *= 2) {
    if (step == 32) value = of_warps(value)[threadIdx.x % WARPS * WIDTH];
    value = join(value, across(value, step < 32 ? step : step / 32));
  }
  return value;
}

template <int LANES = TEAM, class T>
__device__ __forceinline__ T team_sum(T value) {
  return joined<LANES>(value, [](T a, T b) { return a + b; });
}

__device__ __forceinline__ double team_max(double value) {
  return joined<TEAM>(value, [](double a, double b) { return b > a ? b : a; });
}

// The lanes have the same, as a two-sum does not depend on the order.
__device__ __forceinline__ ExactSum team_sum(const ExactSum& sum) {
  return joined<TEAM>(sum, [](ExactSum a, const ExactSum& b) {
    a.left_out += b.left_out;
    add_to(a, b.value);
    return a;
  });
}

// As team_sum for many values at once: afterwards values[j] is the sum of the lanes'
// values[lane + j * WIDTH], lane being that in the warp. At each step a lane gives away every other
// value and keeps the rest.
template <int N>
__device__ __forceinline__ void team_sums(int lane, double (&values)[N]) {
  int left = N;
#pragma unroll
  for (int step = 1; step < WIDTH; step *= 2) {
#pragma unroll
    for (int j = 0; 2 * j < left; ++j) {
      const double even = values[2 * j], odd = 2 * j + 1 < left ? values[2 * j + 1] : 0.0;
      const double given = across(lane & step ? even : odd, step);
      values[j] = (lane & step ? odd : even) + given;
    }
    left = (left + 1) / 2;
  }
#pragma unroll
  for (int j = 0; j < left && WARPS > 1; ++j) {
    const double* all = of_warps(values[j]);
    double sums[WARPS];
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) sums[warp] = all[warp * WIDTH];
#pragma unroll
    for (int step = 1; step < WARPS; step *= 2)
#pragma unroll
      for (int warp = 0; warp < WARPS; warp += 2 * step) sums[warp] += sums[warp + step];
    values[j] = sums[0];
  }
}

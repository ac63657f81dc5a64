// Sums over a team: TEAM neighbouring lanes of a warp that work on one region.

#include "../numerics/exact_sums.cuh"

constexpr unsigned FULL = 0xFFFFFFFFu;

__device__ __forceinline__ double of_lane(double value, int lane) {
  return __shfl_sync(FULL, value, lane, TEAM);
}

// Sums are those of neighbours, then of neighbouring pairs, and so on, for every lane.
template <class T>
__device__ __forceinline__ T team_sum(T value) {
#pragma unroll
  for (int step = 1; step < TEAM; step *= 2) value += __shfl_xor_sync(FULL, value, step, TEAM);
  return value;
}

__device__ __forceinline__ double team_max(double value) {
#pragma unroll
  for (int step = 1; step < TEAM; step *= 2) {
    const double other = __shfl_xor_sync(FULL, value, step, TEAM);
    value = other > value ? other : value;
  }
  return value;
}

// As team_sum for many values at once: afterwards values[j] is the sum of the lanes'
// values[lane + j * TEAM]. At each step a lane gives away every other value and keeps the rest.
template <int N>
__device__ __forceinline__ void team_sums(int lane, double (&values)[N]) {
  int left = N;
#pragma unroll
  for (int step = 1; step < TEAM; step *= 2) {
#pragma unroll
    for (int j = 0; 2 * j < left; ++j) {
      const double even = values[2 * j], odd = 2 * j + 1 < left ? values[2 * j + 1] : 0.0;
      const double given = __shfl_xor_sync(FULL, lane & step ? even : odd, step, TEAM);
      values[j] = (lane & step ? odd : even) + given;
    }
    left = (left + 1) / 2;
  }
}

// As team_sum; the lanes have the same, as a two-sum does not depend on the order.
__device__ __forceinline__ ExactSum team_sum(ExactSum sum) {
#pragma unroll
  for (int step = 1; step < TEAM; step *= 2) {
    const double value = __shfl_xor_sync(FULL, sum.value, step, TEAM);
    sum.left_out += __shfl_xor_sync(FULL, sum.left_out, step, TEAM);
    add_to(sum, value);
  }
  return sum;
}

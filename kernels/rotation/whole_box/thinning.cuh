// The list of the poses found, with the best score; and the best that are apart, one after another.
#pragma once

#include "../ligands.cuh"

// Scores in double precision as unsigned integers, in their order, all above 0, which is none.
__device__ __forceinline__ unsigned long long wide_key_of(double score) {
  const unsigned long long bits = __double_as_longlong(score);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ __forceinline__ double wide_score_of(unsigned long long key) {
  if (!key) return STRUCK;
  return __longlong_as_double(key >> 63 ? key & ~(1ull << 63) : ~key);
}

struct Listed {
  long long pose;  // -1: none, or struck out
  double score;
  unsigned body, unused;
};

struct Band {
  unsigned long long* best;  // key of the best score
  unsigned long long* count;  // of the poses that there were to list,
  Listed* listed;
  unsigned long long most;  // of which there is room for these
  double width;
};

struct Bodies {
  const double* moments;  // float64[bodies][bodies][9]: means of x yᵀ over the atoms of two bodies
  const double* targets;  // float64[bodies][3]: Å, where each centroid goes before the shift
  unsigned count, unused;
};

__device__ double squared_between(const Space& space, const Bodies& bodies, const Listed& one,
                                  const Listed& other) {
  const double* own = bodies.moments + 9 * size_t(one.body) * (bodies.count + 1);
  const double* others = bodies.moments + 9 * size_t(other.body) * (bodies.count + 1);
  const double* both = bodies.moments + 9 * (size_t(one.body) * bodies.count + other.body);
  Placement here, there;
  place(space, one.pose, here);
  place(space, other.pose, there);
  for (int axis = 0; axis < 3; ++axis) {
    here.shift[axis] += bodies.targets[3 * one.body + axis];
    there.shift[axis] += bodies.targets[3 * other.body + axis];
  }
  return squared_distance(own, others, both, here, there);
}

__device__ __forceinline__ bool beats(const Listed& one, const Listed& other) {
  if (one.pose < 0 || other.pose < 0) return one.pose >= 0;
  if (one.score != other.score) return one.score > other.score;
  return one.body != other.body ? one.body < other.body : one.pose < other.pose;
}

// A round: takes the best of the poses that are left, strikes out those near to it and those below
// the band, and finds the best of the rest in each block. The first round only does the last.
// bests: [2][blocks], those of the last round and of this; taken: one for each round before.
extern "C" __global__ void __launch_bounds__(THREADS)
    take_best(Space space, Bodies bodies, Band band, double min_squared, unsigned round,
              Listed* bests, Listed* taken) {
  const unsigned long long count = *band.count;
  if (count > band.most) return;
  __shared__ Listed held[THREADS];
  const Listed none = {-1, 0, 0};
  Listed best = none;
  if (round) {
    const Listed* last = bests + (round - 1) % 2 * gridDim.x;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS)
      if (beats(last[i], best)) best = last[i];
    best = best_of_block(best, held);
    if (blockIdx.x == 0 && threadIdx.x == 0) taken[round - 1] = best;
  }
  const double least = wide_score_of(*band.best) - band.width;
  Listed mine = none;
  for (unsigned long long i = blockIdx.x * THREADS + threadIdx.x; i < count;
       i += gridDim.x * THREADS) {
    Listed& next = band.listed[i];
    if (next.pose < 0) continue;
    const bool taken = next.pose == best.pose && next.body == best.body;
    if (next.score < least || taken ||
        (best.pose >= 0 && squared_between(space, bodies, best, next) < min_squared))
      next.pose = -1;
    else if (beats(next, mine)) mine = next;
  }
  mine = best_of_block(mine, held);
  if (threadIdx.x == 0) bests[round % 2 * gridDim.x + blockIdx.x] = mine;
}

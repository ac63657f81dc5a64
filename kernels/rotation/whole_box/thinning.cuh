// The best poses of a ligand that are apart, one after the other.
#pragma once

#include "../place.cuh"
#include "list.cuh"

struct Bodies {
  const double* moments;  // float64[bodies][bodies][9]: means of x yᵀ over the atoms of two bodies
  const double* targets;  // float64[bodies][3]: Å, where each centroid goes before the shift
  unsigned count, unused;
};

// The mean of the squared distances between the atoms of two placed bodies, as in ../thinning.py.
__device__ double squared_between(const Space& space, const Bodies& bodies, const Listed& one,
                                  const Listed& other) {
  const double* products = bodies.moments + 9 * size_t(one.body) * bodies.count;
  const double *across = products + 9 * other.body, *own = products + 9 * one.body;
  const double* others = bodies.moments + 9 * size_t(other.body) * (bodies.count + 1);
  const double spread = (own[0] + own[4] + own[8]) + (others[0] + others[4] + others[8]);
  Placement here, there;
  place(space, one.pose, here);
  place(space, other.pose, there);
  double overlap = 0, apart = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      double turned = 0;
      for (int k = 0; k < 3; ++k) turned += here.turn[3 * i + k] * across[3 * k + j];
      overlap += turned * there.turn[3 * i + j];
    }
    const double shift = (bodies.targets[3 * one.body + i] + here.shift[i]) -
                         (bodies.targets[3 * other.body + i] + there.shift[i]);
    apart += shift * shift;
  }
  return spread - 2 * overlap + apart;
}

__device__ __forceinline__ bool beats(const Listed& one, const Listed& other) {
  if (one.pose < 0 || other.pose < 0) return one.pose >= 0;
  if (one.score != other.score) return one.score > other.score;
  return one.body != other.body ? one.body < other.body : one.pose < other.pose;
}

// The best of a block's threads, in all of them.
__device__ Listed best_of_block(const Listed& mine) {
  __shared__ Listed held[THREADS];
  __syncthreads();  // before, it may still be read
  held[threadIdx.x] = mine;
  for (unsigned step = THREADS / 2; step; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step && beats(held[threadIdx.x + step], held[threadIdx.x]))
      held[threadIdx.x] = held[threadIdx.x + step];
  }
  __syncthreads();
  return held[0];
}

// A round: takes the best of the poses that are left, strikes out those near to it and those below
// the band, and finds the best of the rest in each block. The first round only does the last.
// bests: [2][blocks], those of the last round and of this; taken: one for each round before.
extern "C" __global__ void __launch_bounds__(THREADS)
    take_best(Space space, Bodies bodies, Band band, double min_squared, unsigned round,
              Listed* bests, Listed* taken) {
  const unsigned long long count = *band.count;
  if (count > band.most) return;
  const Listed none = {-1, 0, 0};
  Listed best = none;
  if (round) {
    const Listed* last = bests + (round - 1) % 2 * gridDim.x;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS)
      if (beats(last[i], best)) best = last[i];
    best = best_of_block(best);
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
  mine = best_of_block(mine);
  if (threadIdx.x == 0) bests[round % 2 * gridDim.x + blockIdx.x] = mine;
}

// The list of the poses found, with the best score.
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

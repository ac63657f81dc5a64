// The ligands of a batch, and their scores as unsigned integers.
#pragma once

#define UNDECIDED __int_as_float(0x7F800000)  // +inf
#define STRUCK __int_as_float(0xFF800000)     // -inf

struct Ligands {
  const long long* offsets;  // of the atoms
  const double* places;      // float64[atoms][3], relative to the centroid
  const double* weights;     // float64[atoms][TERMS]
  const double* starts;      // float64[n][3]: the target from the origin in units of the spacing
  const double* deltas;      // float64[n]: δ of bounds.py
  const int* channels;       // int32[atoms][TERMS]
  const float* doubt;        // float32[n]: nearer than this to a jump is undecided
  unsigned count, unused;
};

// How many blocks each ligand has in this launch; those of one follow each other.
__device__ __forceinline__ unsigned blocks_of_each(const Ligands& ligands) {
  return gridDim.x / ligands.count;
}

// Scores in an order of unsigned integers, all above 0.
__device__ __forceinline__ unsigned key_of(float score) {
  const unsigned bits = __float_as_uint(score);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// 0 is the key of no score.
__device__ __forceinline__ float score_of(unsigned key) {
  if (!key) return STRUCK;
  return __int_as_float(int(key >> 31 ? key & 0x7FFFFFFFu : ~key));
}

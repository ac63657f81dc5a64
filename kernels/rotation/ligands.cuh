// The ligands of a batch, their scores as unsigned integers, and those in double precision.
#pragma once

#include "field.cuh"

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

// What an atom scores in a placement in units of the spacing, in the order of reference.py.
__device__ double exact_atom(const Field& field, const Ligands& ligands, const Placement& placement,
                             long long atom) {
  const double *at = ligands.places + 3 * atom, *turn = placement.turn;
  double there[3], sum = 0;
  for (int k = 0; k < 3; ++k)
    there[k] = (turn[3 * k] * at[0] + turn[3 * k + 1] * at[1]) +
               (turn[3 * k + 2] * at[2] + placement.shift[k]);
  for (int term = 0; term < TERMS; ++term)
    sum += exact(field, channel_of(field, ligands.channels[TERMS * atom + term]), there,
                 term == 0) *
           ligands.weights[TERMS * atom + term];
  return sum;
}

// A pose's score, its atoms summed in their order.
__device__ double exact_score(const Space& space, const Field& field, const Ligands& ligands,
                              unsigned ligand, unsigned long long pose) {
  Placement placement;
  place(space, pose, placement);
  to_grid(field, ligands.starts + 3 * ligand, placement);
  double total = 0;
  for (long long atom = ligands.offsets[ligand]; atom < ligands.offsets[ligand + 1]; ++atom)
    total += exact_atom(field, ligands, placement, atom);
  return total;
}

// Scores in double precision, in the order of reference.py.
#pragma once

#include "field.cuh"
#include "ligands.cuh"

// What an atom scores in a placement in units of the spacing.
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

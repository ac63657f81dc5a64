// Which scores in single precision cannot be the highest, by the formulas that docs/dock.md proves,
// over the terms of each ligand.
//
// LEAST: the lowest b. POWERS, KAPPAS: how many b and κ there are. SLACK: for the rounding here.
#pragma once

#include "ligands.cuh"

#define INFINITE __longlong_as_double(0x7FF0000000000000ll)

constexpr double UNIT = 1. / (1 << 24);

static_assert(POWERS <= THREADS);  // a thread has one b: its row, and b = LEAST + row

// What the proof needs of the field.
struct Steepness {
  const double* values;  // float64[channels][KAPPAS][POWERS]: A(κ, 2^(LEAST + power))
  const double* kappas;  // float64[KAPPAS]
  const float* tops;  // float32[channels]
};

// 2^b of a row.
__device__ __forceinline__ double shortfall(int row) { return ldexp(1., row + LEAST); }

// The sums over a ligand's terms, for one b.
struct Sums {
  double steep[KAPPAS] = {};  // Σ w A(κ, 2d)
  double top = 0, tops = 0;  // T and Σ w |top|
  bool little = true;  // δ A(0, 2d) <= d for every term
};

__device__ Sums sums_of(const Steepness& steepness, const Ligands& ligands, unsigned ligand,
                        int row) {
  Sums out;
  const double delta = SLACK * ligands.deltas[ligand];
  const long long end = TERMS * ligands.offsets[ligand + 1];
  for (long long term = TERMS * ligands.offsets[ligand]; term < end; ++term) {
    const double weight = ligands.weights[term], top = steepness.tops[ligands.channels[term]];
    int power;
    frexp(weight, &power);  // weight >= 2^(power - 1), so 2d < 2^(b + 3 - power)
    const int reach = min(max(row + 3 - power, 0), POWERS - 1);
    const double* steep = steepness.values + size_t(ligands.channels[term]) * KAPPAS * POWERS +
                          reach;
    for (int k = 0; k < KAPPAS; ++k) out.steep[k] += weight * steep[k * POWERS];
    out.top += weight * top;
    out.tops += weight * fabs(top);
    out.little = out.little && delta * steep[0] <= shortfall(row + 1 - power);
  }
  return out;
}

// E(b), before the least of those that follow is taken.
__device__ double error_of(const Steepness& steepness, const Sums& sums, double delta,
                           long long atoms, int row) {
  if (!sums.little || delta >= 0.5) return INFINITE;
  const double rounding = (TERMS * atoms + 32.) * UNIT;
  const double change = LINEAR || PENALTY ? rounding + delta : rounding;
  double least = INFINITE;
  for (int k = 0; k < KAPPAS; ++k) {
    const double kappa = steepness.kappas[k], left = 1 - delta * kappa;
    const double error = (sums.steep[k] + kappa * shortfall(row)) * change +
                         rounding * (sums.tops + shortfall(row));
    if (left > 0.1) least = fmin(least, error * (SLACK / left));
  }
  return least;
}

// The least of the values of this thread and of those that follow in the block.
__device__ double least_from_here(double least) {
  __shared__ double held[THREADS];
  for (unsigned step = 1; step < THREADS; step *= 2) {
    held[threadIdx.x] = least;
    __syncthreads();
    if (threadIdx.x + step < THREADS) least = fmin(least, held[threadIdx.x + step]);
    __syncthreads();
  }
  return least;
}

// One block a ligand. errors: float64[n][POWERS], E(b), inf where no bound was found;
// tops: float64[n], T.
extern "C" __global__ void __launch_bounds__(THREADS)
    bound(Steepness steepness, Ligands ligands, double* errors, double* tops) {
  const unsigned ligand = blockIdx.x, row = threadIdx.x;
  double error = INFINITE;
  if (row < POWERS) {
    const Sums sums = sums_of(steepness, ligands, ligand, row);
    const long long atoms = ligands.offsets[ligand + 1] - ligands.offsets[ligand];
    error = error_of(steepness, sums, ligands.deltas[ligand], atoms, row);
    if (row == 0) tops[ligand] = sums.top;
  }
  error = least_from_here(error);
  if (row < POWERS) errors[size_t(ligand) * POWERS + row] = error;
}

// The largest of the block's errors that are in question; inf: none is.
__device__ double largest(double error, bool in_question) {
  __shared__ double held[THREADS];
  __syncthreads();  // before, it may still be read
  held[threadIdx.x] = in_question ? error : -1;
  __syncthreads();
  for (unsigned step = THREADS / 2; step; step /= 2) {
    if (threadIdx.x < step) held[threadIdx.x] = fmax(held[threadIdx.x], held[threadIdx.x + step]);
    __syncthreads();
  }
  return held[0] < 0 ? INFINITE : held[0];
}

// Poses below its threshold cannot win. One block a ligand.
// greatest: uint32[n], keys of the decided poses' highest scores in this part; highest: uint32[n],
// the same of the round, whose first part this may be; thresholds: float32[n].
extern "C" __global__ void __launch_bounds__(THREADS)
    threshold(const double* errors, const double* tops, const unsigned* greatest, unsigned first,
              unsigned* highest, float* thresholds) {
  const unsigned ligand = blockIdx.x;
  const int row = threadIdx.x;
  const bool there = row < POWERS;
  const unsigned key = max(greatest[ligand], first ? 0 : highest[ligand]);
  const double score = score_of(key), top = tops[ligand];
  const double error = there ? errors[size_t(ligand) * POWERS + row] : 0;
  const double at_most = top - (row ? shortfall(row - 1) : 0) + error;
  const double at_least = top - shortfall(row) - error;
  const double lowest = score - largest(error, there && at_most >= score && at_least <= score);
  const double below = lowest - largest(error, there && at_most >= lowest);
  if (row) return;
  highest[ligand] = key;
  thresholds[ligand] = below == below ? nextafterf(float(below), STRUCK) : STRUCK;
}

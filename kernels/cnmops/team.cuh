// A region in the hands of a team: lane l has the samples l, l + TEAM, ... in its slots. Counts and
// densities of a team in one warp stay in registers, those of a block's in shared memory where that
// has room (SHARED); else they are read and computed in every cycle.
//
// Compiled for SAMPLES, CLASSES, TEAM, SHARED, UNIT (all coverages are 1) and COUNT (int, double).

#include "../numerics/log2_exp2.cuh"
#include "team_sums.cuh"

constexpr bool HELD = WARPS == 1;  // in registers
constexpr int SLOTS = (SAMPLES + TEAM - 1) / TEAM;
constexpr int UNROLLED = HELD ? SLOTS : SHARED ? 4 : 1;
constexpr int KEPT = HELD ? SLOTS : 1;  // slots with registers

struct Constants {  // read with indices known at compile time only: from the constant bank
  double changes[CLASSES], squares[CLASSES], bits[CLASSES];
  double sample_weight;  // a class's weight is prior + posteriors * sample_weight
  double widest, least, floor, least_level, reach, least_most;
  double impact;  // of the prior
  int cycles, main;
};

struct Input {
  const COUNT* counts;  // [regions, SAMPLES]
  const double* scale;  // [SAMPLES]
  const double* cov;
  const double* log_cov;  // to base 2
  const double* levels;  // [regions], where they are given
  const double* weights;  // [SAMPLES, CLASSES], likewise
  const double* changes;  // [CLASSES], for indices that are not known
  const double* falls;  // bits that a density loses for each read of the level
  const double* prior;
  const double* start;
  long long begin, stop;  // regions of this launch
  long long regions;  // of all launches
};

struct Output {
  double* level;  // [regions]
  double* alpha;  // [CLASSES, regions]
  double* ini;  // [regions]
  double* sini;  // [SAMPLES, regions]
  signed char* cn_index;  // [SAMPLES, regions]
  double* posterior;  // [regions, CLASSES, SAMPLES], or null
};

struct Region {
  long long row;
  int lane;
  bool covered;  // has a count above the least; others are taken as 1 and their results not
  bool mine;  // not only there to keep the warp whole
  double most;  // the greatest count
  double x[KEPT], constant[KEPT];
  double held[KEPT][CLASSES];  // densities at the anchor
};

__device__ __forceinline__ int sample_of(const Region& region, int slot) {
  return region.lane + slot * TEAM;
}

__device__ __forceinline__ bool filled(const Region& region, int slot) {
  return (slot + 1) * TEAM <= SAMPLES || sample_of(region, slot) < SAMPLES;
}

__device__ __forceinline__ double counted(const Input& input, const Region& region, int slot) {
  if (!filled(region, slot)) return 0;
  const int k = sample_of(region, slot);
  return input.counts[region.row * SAMPLES + k] * input.scale[k];
}

extern __shared__ double numbers[];  // of each slot the densities and the count, of all lanes

// A class's density, or the count at CLASSES.
__device__ __forceinline__ double& shared_number(const Region& region, int slot, int i) {
  return numbers[(slot * (CLASSES + 1) + i) * TEAM + region.lane];
}

__device__ __forceinline__ double count(const Input& input, const Region& region, int slot) {
  if (HELD) return region.x[HELD ? slot : 0];
  if (!region.covered) return 1.0;
  return SHARED ? shared_number(region, slot, CLASSES) : counted(input, region, slot);
}

__device__ __forceinline__ double coverage(const Input& input, const Region& region, int slot) {
  return UNIT || !filled(region, slot) ? 1.0 : input.cov[sample_of(region, slot)];
}

// What the logarithm of a density has besides x log(rate) - mean.
__device__ __forceinline__ double computed_constant(const Input& input, const Region& region,
                                                    int slot, double x) {
  const double shift = UNIT || !filled(region, slot) ? 0.0 : input.log_cov[sample_of(region, slot)];
  return log2_factorial(x) - x * shift;
}

// Finds the team's region and reads its counts. `level` is given, or 0.
__device__ __forceinline__ Region taken(const Input& input, const Constants& constants) {
  Region region;
  const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  region.lane = threadIdx.x % TEAM;
  region.row = input.begin + thread / TEAM;
  region.mine = region.row < input.stop;
  if (!region.mine) region.row = input.stop - 1;
  double most = input.levels ? input.levels[region.row] : 0.0;
#pragma unroll HELD ? SLOTS : 4
  for (int slot = 0; slot < SLOTS; ++slot) {
    const double x = counted(input, region, slot);
    if (HELD) region.x[HELD ? slot : 0] = x;
    if (SHARED) shared_number(region, slot, CLASSES) = x;
    most = x > most ? x : most;
  }
  most = team_max(most);
  region.covered = most > constants.least;
  region.most = region.covered && most > constants.least_most ? most : constants.least_most;
  if (HELD) {
#pragma unroll
    for (int slot = 0; slot < KEPT; ++slot) {
      if (!region.covered) region.x[slot] = 1.0;
      region.constant[slot] = computed_constant(input, region, slot, region.x[slot]);
    }
  }
  return region;
}

// The level at which densities are known, and the rates that belong to it.
struct Anchor {
  double level, log_level;
  bool squared;  // fold changes count twice
};

// What all densities of a sample are made of. Compilers do not see that it is the same for each.
struct Reads {
  double count, constant, coverage;
};

__device__ __forceinline__ Reads reads_of(const Input& input, const Region& region, int slot) {
  const double x = count(input, region, slot);
  const double constant = HELD ? region.constant[HELD ? slot : 0]
                               : computed_constant(input, region, slot, x);
  return {x, constant, coverage(input, region, slot)};
}

__device__ __forceinline__ double density(const Constants& constants, const Anchor& anchor,
                                          const Reads& reads, int i) {
  const double change = anchor.squared ? constants.squares[i] : constants.changes[i];
  const double log_change = constants.bits[i];
  const double log_rate = anchor.log_level + (anchor.squared ? 2 * log_change : log_change);
  const double mean = anchor.level * LOG2E * reads.coverage;
  const double rest = fma(-mean, change, -reads.constant);
  return exp2_or_little(fma(reads.count, log_rate, rest));
}

__device__ __forceinline__ Anchor anchored(const Input& input, Region& region,
                                           const Constants& constants, double level, bool squared) {
  const Anchor anchor = {level, log2_of(level), squared};
#pragma unroll HELD ? SLOTS : 1
  for (int slot = 0; slot < (HELD || SHARED ? SLOTS : 0); ++slot) {
    const Reads reads = reads_of(input, region, slot);
#pragma unroll
    for (int i = 0; i < CLASSES; ++i) {
      double& kept = SHARED ? shared_number(region, slot, i) : region.held[HELD ? slot : 0][i];
      kept = density(constants, anchor, reads, i);
    }
  }
  return anchor;
}

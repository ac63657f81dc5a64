// The mixture of Poissons: levels estimated from the samples (`estimate`), or given (`compare`).
//
// A density is taken from that at another level, the anchor:
//
//     poisson(x; L I) = poisson(x; anchor I) * (L / anchor)^x * exp(-(L - anchor) I)
//
// so a cycle takes an exponential for each sample and each class, and not for each pair of them.
// The factor of the sample is the same for all classes and cancels in the posterior; the floor under
// the density is divided by it instead. When level and anchor are so far apart that a number might
// leave the range of float64, or where coverages are not all 1, the level becomes the anchor.
//
// The last cycle, whose numbers are the answers, is R's to the bit wherever R's are exact:
// `cpu.py` says how.

#include "team.cuh"
#include "start.cuh"

constexpr int THREADS = HELD ? 128 : TEAM;
// That a multiprocessor has room for.
constexpr int BLOCKS = HELD ? (SLOTS * CLASSES > 40 ? 2 : 3) : 512 / TEAM;
constexpr int OWNED = (CLASSES + WIDTH - 1) / WIDTH;  // lane l has the classes l, l + WIDTH, ...

// The state of a cycle.
struct Cycle {
  double floor_rate;  // bits of what the floor is divided by, for each read
  double factor[CLASSES];  // weight, and the way from the anchor to the level
};

__device__ __forceinline__ int owned(const Region& region, int j) {
  return min(region.lane % WIDTH + j * WIDTH, CLASSES - 1);
}

__device__ __forceinline__ Cycle at_level(const Input& input, const Region& region,
                                          const Anchor& anchor, double level,
                                          const double (&alpha)[OWNED]) {
  Cycle cycle = {UNIT ? -log2_of_ratio(level, anchor.level) : 0.0};
  double mine[OWNED];
#pragma unroll
  for (int j = 0; j < OWNED; ++j) {
    mine[j] = alpha[j];
    if (UNIT) mine[j] *= exp2_of((anchor.level - level) * input.falls[owned(region, j)]);
  }
#pragma unroll
  for (int i = 0; i < CLASSES; ++i) cycle.factor[i] = of_lane(mine[i / WIDTH], i % WIDTH);
  return cycle;
}

__device__ __forceinline__ double held(const Region& region, const Constants& constants,
                                       const Anchor& anchor, const Reads& reads, int slot, int i) {
  if (HELD) return region.held[HELD ? slot : 0][i];
  if (SHARED) return shared_number(region, slot, i);
  return density(constants, anchor, reads, i);
}

// 1 / the sum of a sample's weighted densities, 0 for an empty slot.
__device__ __forceinline__ double share_of(const Region& region, int slot,
                                           const double (&weighted)[CLASSES]) {
  double sums[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < CLASSES; ++i) sums[i & 1] += weighted[i];
  // Not a choice: compilers make it a branch, and slots then wait for each other.
  return reciprocal(sums[0] + sums[1]) * (filled(region, slot) ? 1.0 : 0.0);
}

// A sample's weighted densities, floored; returns 1 / their sum.
__device__ __forceinline__ double weigh(const Input& input, const Region& region,
                                        const Constants& constants, const Anchor& anchor,
                                        const Cycle& cycle, int slot, double (&weighted)[CLASSES]) {
  const Reads reads = reads_of(input, region, slot);
  double floor = constants.floor;
  if (UNIT) floor *= exp2_of(reads.count * cycle.floor_rate);
#pragma unroll
  for (int i = 0; i < CLASSES; ++i) {
    const double here = held(region, constants, anchor, reads, slot, i) * cycle.factor[i];
    weighted[i] = here > floor ? here : floor;
  }
  return share_of(region, slot, weighted);
}

// The weighted densities of the last cycle: they are brought to the floor, not the floor to them.
__device__ __forceinline__ void weigh_last(const Input& input, const Region& region,
                                           const Constants& constants, const Anchor& anchor,
                                           const Cycle& cycle, int slot,
                                           double (&weighted)[CLASSES]) {
  const Reads reads = reads_of(input, region, slot);
  double to_level = 1;
  if (UNIT) to_level = exp2_of(0.0 - reads.count * cycle.floor_rate);
#pragma unroll
  for (int i = 0; i < CLASSES; ++i) {
    const double here = held(region, constants, anchor, reads, slot, i) * cycle.factor[i];
    weighted[i] = here * to_level > constants.floor ? here * to_level : constants.floor;
  }
}

// The same where the level is given: R floors before it weighs.
__device__ __forceinline__ void weigh_given(const Input& input, const Region& region,
                                            const Constants& constants, const Anchor& anchor,
                                            int slot, double (&weighted)[CLASSES]) {
  const int k = filled(region, slot) ? sample_of(region, slot) : 0;
  const Reads reads = reads_of(input, region, slot);
#pragma unroll
  for (int i = 0; i < CLASSES; ++i) {
    const double here = held(region, constants, anchor, reads, slot, i);
    weighted[i] = (here > constants.floor ? here : constants.floor) *
                  input.weights[k * CLASSES + i];
  }
}

// Makes posteriors of weighted densities, as R adds (GIVEN: in 80 bits) and divides; returns 1, or 0
// for an empty slot.
template <bool GIVEN>
__device__ __forceinline__ double divide(const Region& region, int slot,
                                         double (&weighted)[CLASSES]) {
  ExactSum sum = {};
  double total = 0;
#pragma unroll
  for (int i = 0; i < CLASSES; ++i) {
    if (GIVEN) add_to(sum, weighted[i]);
    else total += weighted[i];
  }
  if (GIVEN) total = sum.value + in_80_bits(sum);
  const double inverse = nearest_reciprocal(total);
#pragma unroll
  for (int i = 0; i < CLASSES; ++i) weighted[i] = divided(weighted[i], total, inverse);
  return filled(region, slot) ? 1.0 : 0.0;
}

// Posteriors summed over samples, and the counts that they let expect at level 1.
struct Totals {
  double of_class[CLASSES];  // in the end those of the lane's classes, first
  double expected;
};

__device__ __forceinline__ void add(const Input& input, const Region& region,
                                    const Constants& constants, int slot,
                                    const double (&weighted)[CLASSES], double share,
                                    Totals& totals) {
  double expected = 0;
#pragma unroll
  for (int i = 0; i < CLASSES; ++i) {
    totals.of_class[i] = fma(weighted[i], share, totals.of_class[i]);
    if (!UNIT) expected = fma(weighted[i], constants.changes[i], expected);
  }
  if (!UNIT)
    totals.expected = fma(expected * share, coverage(input, region, slot), totals.expected);
}

__device__ __forceinline__ void sum_up(const Input& input, const Region& region, Totals& totals) {
  team_sums(region.lane, totals.of_class);
  if (UNIT) {
#pragma unroll
    for (int j = 0; j < OWNED; ++j) {
      const double change = input.changes[owned(region, j)];
      if (region.lane % WIDTH + j * WIDTH < CLASSES)
        totals.expected = fma(totals.of_class[j], change, totals.expected);
    }
  }
  totals.expected = team_sum<UNIT ? WIDTH : TEAM>(totals.expected);  // all warps have the classes
}

// A sample's answers; returns how informative it is.
__device__ __forceinline__ double put_sample(const Input& input, const Region& region,
                                             const Constants& constants, int slot,
                                             const double (&posterior)[CLASSES],
                                             const Output& out) {
  double signed_sum = 0, informative = 0, best = -1;
  int likeliest = 0;
#pragma unroll
  for (int i = 0; i < CLASSES; ++i) {
    signed_sum += posterior[i] * constants.bits[i];
    informative += posterior[i] * fabs(constants.bits[i]);
    if (posterior[i] > best) {
      best = posterior[i];
      likeliest = i;
    }
  }
  if (!filled(region, slot)) return 0;
  if (!region.mine) return informative;
  const int k = sample_of(region, slot);
  const long long at = k * input.regions + region.row;
  out.sini[at] = region.covered ? signed_sum : 0.0;
  out.cn_index[at] = region.covered ? likeliest : constants.main;
  if (out.posterior) {
#pragma unroll
    for (int i = 0; i < CLASSES; ++i)
      out.posterior[(region.row * CLASSES + i) * SAMPLES + k] =
          region.covered ? posterior[i] : double(i == constants.main);
  }
  return informative;
}

__device__ __forceinline__ void put_region(const Input& input, const Region& region,
                                           const Constants& constants, const double (&alpha)[OWNED],
                                           double level, const ExactSum& informative,
                                           const Output& out) {
  if (!region.mine || region.lane >= WIDTH) return;
#pragma unroll
  for (int j = 0; j < OWNED; ++j) {
    const int i = region.lane + j * WIDTH;
    if (i < CLASSES)
      out.alpha[i * input.regions + region.row] = region.covered ? alpha[j]
                                                                 : double(i == constants.main);
  }
  if (region.lane) return;
  out.level[region.row] = region.covered || input.levels ? level : 0.0;
  out.ini[region.row] = region.covered ? exact_mean(informative, SAMPLES) : 0.0;
}

// All samples' posteriors into `totals`; in the last cycle into `out`, too, and how informative the
// lane's samples are is returned.
template <bool LAST>
__device__ __forceinline__ ExactSum add_posteriors(const Input& input, const Region& region,
                                                   const Constants& constants, const Anchor& anchor,
                                                   const Cycle& cycle, Totals& totals,
                                                   const Output& out) {
  ExactSum informative = {};
  double weighted[CLASSES];
#pragma unroll UNROLLED
  for (int slot = 0; slot < SLOTS; ++slot) {
    double share;
    if (LAST) {
      weigh_last(input, region, constants, anchor, cycle, slot, weighted);
      share = divide<false>(region, slot, weighted);
      add_to(informative, put_sample(input, region, constants, slot, weighted, out));
    } else {
      share = weigh(input, region, constants, anchor, cycle, slot, weighted);
    }
    add(input, region, constants, slot, weighted, share, totals);
  }
  sum_up(input, region, totals);
  return informative;
}

__device__ __forceinline__ double all_reads(const Input& input, const Region& region) {
  double reads = 0;
#pragma unroll HELD ? SLOTS : 4
  for (int slot = 0; slot < SLOTS; ++slot)
    if (filled(region, slot)) reads += count(input, region, slot);
  return team_sum(reads);
}

// Puts the anchor where it must be for cycle c at this level.
__device__ __forceinline__ Cycle prepared(const Input& input, Region& region,
                                          const Constants& constants, int c, double level,
                                          const double (&alpha)[OWNED], Anchor& anchor) {
  const double apart = fabs(level - anchor.level),
               least = level < anchor.level ? level : anchor.level;
  // |log(level / anchor)| is no more than apart / least.
  const double reach = apart * fma(constants.widest, least, region.most);
  if (!UNIT || c < 2 || reach > constants.reach * least)
    anchor = anchored(input, region, constants, level, c == 0);
  return at_level(input, region, anchor, level, alpha);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    estimate(Input input, Constants constants, Output out) {
  Region region = taken(input, constants);
  const double reads = all_reads(input, region);
  double alpha[OWNED], level = start_of(input, region, constants);
  ExactSum informative = {};
#pragma unroll
  for (int j = 0; j < OWNED; ++j) alpha[j] = input.start[owned(region, j)];
  Anchor anchor = {level, 0, true};
  // A warp whose regions all tell nothing has only to write that down.
  const int cycles = __any_sync(FULL, region.covered) ? constants.cycles : 1;
  for (int c = 0; c < cycles; ++c) {
    const Cycle cycle = prepared(input, region, constants, c, level, alpha, anchor);
    Totals totals = {};
    if (c < cycles - 1) {
      add_posteriors<false>(input, region, constants, anchor, cycle, totals, out);
#pragma unroll
      for (int j = 0; j < OWNED; ++j)
        alpha[j] = fma(totals.of_class[j], constants.sample_weight, input.prior[owned(region, j)]);
      level = reads * reciprocal(totals.expected);
      continue;
    }
    informative = add_posteriors<true>(input, region, constants, anchor, cycle, totals, out);
#pragma unroll
    for (int j = 0; j < OWNED; ++j) {
      const double prior = owned(region, j) == constants.main ? constants.impact : 0.0;
      alpha[j] = (prior + totals.of_class[j] / SAMPLES) / (1.0 + constants.impact);
    }
    level = reads / totals.expected;
  }
  put_region(input, region, constants, alpha, level, team_sum(informative), out);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    compare(Input input, Constants constants, Output out) {
  Region region = taken(input, constants);
  const double level = input.levels[region.row];
  const Anchor anchor = anchored(input, region, constants, region.covered ? level : 1.0, false);
  Totals totals = {};
  ExactSum informative = {};
#pragma unroll UNROLLED
  for (int slot = 0; slot < SLOTS; ++slot) {
    double weighted[CLASSES];
    weigh_given(input, region, constants, anchor, slot, weighted);
    const double share = divide<true>(region, slot, weighted);
    add(input, region, constants, slot, weighted, share, totals);
    add_to(informative, put_sample(input, region, constants, slot, weighted, out));
  }
  sum_up(input, region, totals);
  double alpha[OWNED];
#pragma unroll
  for (int j = 0; j < OWNED; ++j) alpha[j] = totals.of_class[j] / SAMPLES;
  put_region(input, region, constants, alpha, level, team_sum(informative), out);
}

// level[region] = the mean of the counts over coverages, at least `least`.
extern "C" __global__ void __launch_bounds__(128)
    mean_of(const COUNT* counts, const double* scale, const double* cov, long long regions,
            double least, double* level) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= regions) return;
  double total = 0;
  for (int k = 0; k < SAMPLES; ++k) total += counts[row * SAMPLES + k] * scale[k] / cov[k];
  const double mean = total / SAMPLES;
  level[row] = mean > least ? mean : least;
}

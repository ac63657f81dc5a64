// The level at which a region starts: the median of its counts over coverages.

__device__ __forceinline__ double scaled(const Input& input, const Region& region, int slot) {
  return count(input, region, slot) / coverage(input, region, slot);
}

// Of values in registers: those with the right number before them, equal ones in the order of the
// samples. `low` is the upper one of the lower half, `high` the lower one of the upper half; with an
// odd number they are the same.
__device__ __forceinline__ void middle_of_held(const Input& input, const Region& region,
                                               double& low, double& high) {
  double values[KEPT];
  int before[KEPT];
#pragma unroll
  for (int slot = 0; slot < KEPT; ++slot) {
    values[slot] = scaled(input, region, slot);
    before[slot] = 0;
  }
#pragma unroll
  for (int from = 0; from < KEPT; ++from) {
    for (int lane = 0; lane < min(TEAM, SAMPLES - from * TEAM); ++lane) {
      const double other = of_lane(values[from], lane);
#pragma unroll
      for (int slot = 0; slot < KEPT; ++slot) {
        const bool earlier = from < slot || (from == slot && lane < region.lane);
        before[slot] += earlier ? other <= values[slot] : other < values[slot];
      }
    }
  }
  low = high = 0;
#pragma unroll
  for (int slot = 0; slot < KEPT; ++slot) {
    if (filled(region, slot) && before[slot] == (SAMPLES - 1) / 2) low = values[slot];
    if (filled(region, slot) && before[slot] == SAMPLES / 2) high = values[slot];
  }
  low = team_max(low);
  high = team_max(high);
}

// Of values that are read again and again: the middle is from `low` to `upper`, and a number halfway
// as bits, which are in the order of numbers, says on which side of it.
__device__ __forceinline__ void middle_of_streamed(const Input& input, const Region& region,
                                                   double& low, double& high) {
  double least = 1.7e308, upper = 0;
  for (int slot = 0; slot < SLOTS; ++slot) {
    if (!filled(region, slot)) continue;
    const double value = scaled(input, region, slot);
    least = value < least ? value : least;
    upper = value > upper ? value : upper;
  }
  low = 0.0 - team_max(-least);  // not -0
  upper = team_max(upper);
  while (low < upper) {
    const double pivot = of_bits((bits_of(low) + bits_of(upper) + 1) / 2);
    double under = low, over = upper;  // the nearest values on both sides
    int below = 0;
    for (int slot = 0; slot < SLOTS; ++slot) {
      if (!filled(region, slot)) continue;
      const double value = scaled(input, region, slot);
      below += value < pivot;
      if (value < pivot) under = value > under ? value : under;
      else over = value < over ? value : over;
    }
    if (team_sum(below) > (SAMPLES - 1) / 2) upper = team_max(under);
    else low = -team_max(-over);
  }
  int within = 0;
  double above = -1;  // the negative of the least value above
  for (int slot = 0; slot < SLOTS; ++slot) {
    if (!filled(region, slot)) continue;
    const double value = scaled(input, region, slot);
    within += value <= low;
    if (value > low && (above == -1 || -value > above)) above = -value;
  }
  const double nearest = -team_max(above == -1 ? -1.7e308 : above);
  high = team_sum(within) > SAMPLES / 2 ? low : nearest;
}

__device__ __forceinline__ double start_of(const Input& input, const Region& region,
                                           const Constants& constants) {
  double low, high;
  if (HELD) middle_of_held(input, region, low, high);
  else middle_of_streamed(input, region, low, high);
  const double median = (low + high) / 2;
  double over_cov = 0;
#pragma unroll HELD ? SLOTS : 4
  for (int slot = 0; slot < SLOTS; ++slot)
    if (filled(region, slot)) over_cov += scaled(input, region, slot);
  const double mean = team_sum(over_cov) / SAMPLES;
  if (median >= constants.least_level) return median;
  return mean > 1.0 ? mean : 1.0;
}

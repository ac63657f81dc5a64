// What samples should have: means of reference depths, and dispersions of regions. Macros: COUNT,
// the type of a count; REFERENCES, how many a sample has, of which CUT are left out at either end;
// SPREAD, how many samples tell a dispersion. Operations and their order are those of cpu.py.

typedef long long i64;

constexpr double LEAST_MEAN = 0.5, LEAST_DISPERSION = 0.001, SHRINKAGE = 0.5, NORMAL_MAD = 1.4826;
constexpr int UNROLLED = 24;  // values that are sorted in registers
constexpr int KEPT = REFERENCES - 2 * CUT;

struct Cohort {
  const COUNT* counts;  // [regions, columns]
  const unsigned char* inside;
  const double* weights;  // [2, columns]
  const int* references;  // [samples, REFERENCES]
  const double* sizes;  // [2, samples]
  const int* spread;
  i64 regions;
  double typical;  // dispersion
  double worth;  // of reference depths
  int columns, samples;
};

// Puts the values from the `LEAST`-th on in order, by exchanges that suit registers.
template <int LEAST, int N>
__device__ __forceinline__ void sort_from(float (&values)[N]) {
#pragma unroll(N <= UNROLLED ? N : 1)
  for (int last = N - 1; last > 0 && last >= LEAST; --last) {
#pragma unroll(N <= UNROLLED ? N : 1)
    for (int i = 0; i < last; ++i) {
      const float low = values[i], high = values[i + 1];
      values[i] = high < low ? high : low;
      values[i + 1] = high < low ? low : high;
    }
  }
}

template <int N>
__device__ __forceinline__ double median(float (&values)[N]) {
  sort_from<(N - 1) / 2>(values);
  return (double(values[(N - 1) / 2]) + double(values[N / 2])) * 0.5;
}

__device__ __forceinline__ double reference_depth(const Cohort& cohort, i64 row, int sample) {
  const int* columns = cohort.references + sample * REFERENCES;
  const double* weights = cohort.weights + (cohort.inside[row] ? cohort.columns : 0);
  float depths[REFERENCES];
#pragma unroll(REFERENCES <= UNROLLED ? REFERENCES : 1)
  for (int k = 0; k < REFERENCES; ++k)
    depths[k] = float(cohort.counts[row * cohort.columns + columns[k]] * weights[columns[k]]);
  sort_from<CUT>(depths);
  double total = 0;
#pragma unroll(REFERENCES <= UNROLLED ? REFERENCES : 1)
  for (int k = CUT; k < REFERENCES - CUT; ++k) total += depths[k];
  return total / KEPT;
}

extern "C" __global__ void __launch_bounds__(128) means(Cohort cohort, float* mean) {
  const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const int samples = cohort.samples, sample = int(thread % samples);
  const i64 row = thread / samples;
  if (row >= cohort.regions) return;
  const double size = cohort.sizes[(cohort.inside[row] ? samples : 0) + sample];
  const double usual = reference_depth(cohort, row, sample) * size;
  mean[thread] = float(usual > LEAST_MEAN ? usual : LEAST_MEAN);
}

extern "C" __global__ void __launch_bounds__(128)
    dispersions(Cohort cohort, const float* mean, float* dispersion) {
  const i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= cohort.regions) return;
  float means[SPREAD], ratios[SPREAD], off[SPREAD];
#pragma unroll(SPREAD <= UNROLLED ? SPREAD : 1)
  for (int k = 0; k < SPREAD; ++k) {
    means[k] = mean[row * cohort.samples + cohort.spread[k]];
    off[k] = ratios[k] =
        float(double(cohort.counts[row * cohort.columns + cohort.spread[k]]) / double(means[k]));
  }
  const double middle = median(ratios);
#pragma unroll(SPREAD <= UNROLLED ? SPREAD : 1)
  for (int k = 0; k < SPREAD; ++k) off[k] = float(fabs(off[k] - middle));
  const double deviation = NORMAL_MAD * median(off);
  const double poisson = 1 / median(means) * (1 + 1 / cohort.worth);
  const double beyond = deviation * deviation - poisson;
  const double base = (1 - SHRINKAGE) * cohort.typical + LEAST_DISPERSION;
  dispersion[row] = float(SHRINKAGE * (beyond > 0 ? beyond : 0) + base);
}

// Statistics of counts [regions, width], row by row. Compiled for COUNT: int or double, and without
// fused multiply-add: `cpu.py` does the same operations in the same order.

using i64 = long long;

struct Counts {
  const COUNT* counts;  // [regions, width]
  const unsigned char* used;  // [regions] which are looked at; null: all
  const int* samples;  // [chosen] which columns are
  i64 regions;
  int width, chosen;
};

__device__ __forceinline__ i64 thread_index() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

__device__ __forceinline__ double at(const Counts& c, i64 row, int k) {
  return c.counts[row * c.width + c.samples[k]];
}

__device__ __forceinline__ bool is_used(const Counts& c, i64 row) { return !c.used || c.used[row]; }

// Which regions have a count of 1 or more; *illegal is set where one is negative or not finite.
extern "C" __global__ void __launch_bounds__(256)
    find_used(Counts c, unsigned char* used, unsigned* illegal) {
  const i64 row = thread_index();
  if (row >= c.regions) return;
  bool some = false, wrong = false;
  for (int k = 0; k < c.chosen; ++k) {
    const double x = at(c, row, k);
    some |= x >= 1;
    wrong |= !(x >= 0 && x < 1.7976931348623157e308);
  }
  used[row] = some;
  if (wrong) atomicOr(illegal, 1u);
}

// A block sums a stretch of `stretch` regions. Each thread has columns of its own and every so many
// regions: sums of whole numbers are exact, all others the same in every run.
// out[stretches * flight, chosen], flight = how many regions are under way at a time.
extern "C" __global__ void __launch_bounds__(256) add_up(Counts c, int stretch, double* out) {
  const int lanes = min(c.chosen, int(blockDim.x)), flight = blockDim.x / lanes;
  const int mine = threadIdx.x / lanes;
  if (mine >= flight) return;
  const i64 begin = (i64)blockIdx.x * stretch, stop = min(begin + stretch, c.regions);
  for (int k = threadIdx.x % lanes; k < c.chosen; k += lanes) {
    double sum = 0;
    for (i64 row = begin + mine; row < stop; row += flight)
      if (is_used(c, row)) sum += at(c, row, k);
    out[((i64)blockIdx.x * flight + mine) * c.chosen + k] = sum;
  }
}

// Variance over mean of each used region's counts times factors; infinity for all others.
extern "C" __global__ void __launch_bounds__(256)
    ratios(Counts c, const double* factors, double* out) {
  const i64 row = thread_index();
  if (row >= c.regions) return;
  if (!is_used(c, row)) {
    out[row] = __longlong_as_double(0x7FF0000000000000ll);
    return;
  }
  double mean = 0, squares = 0;
  for (int k = 0; k < c.chosen; ++k) mean += at(c, row, k) * factors[k];
  mean /= c.chosen;
  for (int k = 0; k < c.chosen; ++k) {
    const double off = at(c, row, k) * factors[k] - mean;
    squares += off * off;
  }
  out[row] = squares / (c.chosen - 1) / mean;
}

// Statistics of counts [regions, width], row by row. Compiled for COUNT: int or double, and without
// fused multiply-add: `cpu.py` and `ascending.py` do the same operations in the same order.

using i64 = long long;

constexpr unsigned FULL = 0xFFFFFFFFu;
constexpr int WARP = 32;

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

// One column; regions that are not used become the greatest value, so that they are sorted last.
extern "C" __global__ void __launch_bounds__(256) column(Counts c, COUNT greatest, COUNT* out) {
  const i64 row = thread_index();
  if (row < c.regions)
    out[row] = is_used(c, row) ? c.counts[row * c.width + c.samples[0]] : greatest;
}

// Where runs of equal values begin in ascending `values`, in no order; `count` of them.
extern "C" __global__ void __launch_bounds__(256)
    find_runs(const COUNT* values, i64 n, double* distinct, i64* places,
              unsigned long long* count) {
  const i64 i = thread_index();
  if (i >= n || (i && values[i] == values[i - 1])) return;
  const unsigned long long place = atomicAdd(count, 1ull);
  distinct[place] = values[i];
  places[place] = i;
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

// Sums of values - center, and of its squares after them, of every thread: sums[2 * threads].
extern "C" __global__ void __launch_bounds__(256)
    moments(const double* values, i64 n, double center, double* sums) {
  const i64 threads = (i64)gridDim.x * blockDim.x;
  double sum = 0, squares = 0;
  for (i64 i = thread_index(); i < n; i += threads) {
    const double off = values[i] - center;
    sum += off;
    squares += off * off;
  }
  sums[thread_index()] = sum;
  sums[threads + thread_index()] = squares;
}

// The first of ascending values that lies in this cell of a grid or beyond.
__device__ i64 first_in(const double* values, i64 n, double low, double step, i64 cell) {
  i64 begin = 0, stop = n;
  while (begin < stop) {
    const i64 middle = begin + (stop - begin) / 2;
    if (floor((values[middle] - low) / step) < cell) begin = middle + 1;
    else stop = middle;
  }
  return begin;
}

// What the values in cell -1, 0, ... of a grid leave to the points on either side: a warp each.
// out[2 * (cell + 1)] to the point below, the next to the one above.
extern "C" __global__ void __launch_bounds__(256)
    share_out(const double* values, i64 n, double low, double step, i64 cells, double* out) {
  const i64 warp = thread_index() / WARP;
  const i64 cell = min(warp, cells - 1) - 1;
  const i64 stop = first_in(values, n, low, step, cell + 1);
  double below = 0, above = 0;
  for (i64 i = first_in(values, n, low, step, cell) + threadIdx.x % WARP; i < stop; i += WARP) {
    const double place = (values[i] - low) / step, upper = place - floor(place);
    below += 1 - upper;
    above += upper;
  }
  for (int step_of = WARP / 2; step_of; step_of /= 2) {
    below += __shfl_xor_sync(FULL, below, step_of);
    above += __shfl_xor_sync(FULL, above, step_of);
  }
  if (warp < cells && threadIdx.x % WARP == 0) {
    out[2 * warp] = below;
    out[2 * warp + 1] = above;
  }
}

// Sums that keep what their roundings leave out; exact_sums.py has the same.

// A sum and what its roundings left out.
struct ExactSum {
  double value, left_out;
};

// Knuth's two-sum.
__device__ __forceinline__ void add_to(ExactSum& sum, double x) {
  const double total = sum.value + x, of_x = total - sum.value;
  sum.left_out += (sum.value - (total - of_x)) + (x - of_x);
  sum.value = total;
}

// What was left out, rounded so that the sum has the 64 bits of R's.
__device__ __forceinline__ double in_80_bits(const ExactSum& sum) {
  const double shift = sum.value * 4.8828125e-4;
  return (sum.left_out + shift) - shift;
}

__device__ __forceinline__ double exact_mean(const ExactSum& sum, double n) {
  const double mean = sum.value / n;
  return mean + (fma(-mean, n, sum.value) + in_80_bits(sum)) / n;
}

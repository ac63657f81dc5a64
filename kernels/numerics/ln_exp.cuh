// Natural logarithms and powers of e; `ln_exp.py` has the same, operation by operation, and says why.
// To be compiled without fused multiply-add.

constexpr double LOG2_E = 1.4426950408889634;
constexpr double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52
constexpr unsigned long long ONE = 0x3FF0000000000000, ROOT_HALF = 0x3FE6A09E667F3BCD;
constexpr int DIGITS = 52;  // bits after the exponent

__device__ double times_power_of_2(double x, long long n) {
  const unsigned long long bits = __double_as_longlong(x);
  return __longlong_as_double(bits + ((unsigned long long)n << DIGITS));
}

// The natural logarithm of a normal number above 0.
__device__ double ln(double x) {
  const unsigned long long bits = __double_as_longlong(x);
  const long long whole = (long long)((bits + (ONE - ROOT_HALF)) >> DIGITS) - 1023;
  const double n = double(whole), f = times_power_of_2(x, -whole) - 1.0;
  const double s = f / (2.0 + f), z = s * s, z2 = z * z, z4 = z2 * z2;
  const double low = (2.0 / 3 + 2.0 / 5 * z) + z2 * (2.0 / 7 + 2.0 / 9 * z);
  const double middle = (2.0 / 11 + 2.0 / 13 * z) + z2 * (2.0 / 15 + 2.0 / 17 * z);
  const double series = low + z4 * (middle + z4 * (2.0 / 19 + 2.0 / 21 * z));
  const double tail = s * (z * series - f);
  return n * LN2_HIGH + (f + (tail + n * LN2_LOW));
}

// ln(1 + x) for x above -1.
__device__ double ln_1p(double x) {
  const double y = 1.0 + x;
  return ln(y) + (x - (y - 1.0)) / y;
}

// e^x for x from -700 to 700.
__device__ double exp_of(double x) {
  const double n = (x * LOG2_E + ROUND) - ROUND, r = (x - n * LN2_HIGH) - n * LN2_LOW;
  const double r2 = r * r, r4 = r2 * r2;
  const double low = (1.0 / 2 + 1.0 / 6 * r) + r2 * (1.0 / 24 + 1.0 / 120 * r);
  const double middle = (1.0 / 720 + 1.0 / 5040 * r) + r2 * (1.0 / 40320 + 1.0 / 362880 * r);
  const double high = (1.0 / 3628800 + 1.0 / 39916800 * r) +
                      r2 * (1.0 / 479001600 + 1.0 / 6227020800 * r);
  const double power = 1.0 + (r + r2 * (low + r4 * (middle + r4 * high)));
  return times_power_of_2(power, (long long)n);
}

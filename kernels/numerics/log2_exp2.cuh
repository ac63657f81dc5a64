// 1 / x, 2 ** x, log2 and log2(x!): the same operations in the same order as in log2_exp2.py, so that
// the bits are the same. No two of them may be contracted (--fmad=false).

constexpr double LOG2E = 1.4426950408889634;

__device__ __forceinline__ unsigned long long bits_of(double x) {
  return (unsigned long long)__double_as_longlong(x);
}

__device__ __forceinline__ double of_bits(unsigned long long bits) {
  return __longlong_as_double((long long)bits);
}

// 1 / x for normal x whose reciprocal is normal, to 3 ulp: exactly rounded, of x without its last
// bit. From an approximation within one ulp, a step by the exact remainder gives the exactly rounded
// reciprocal of any number whose mantissa is not all ones (Markstein, IBM J. Res. Dev. 34, 1990).
__device__ __forceinline__ double reciprocal(double x) {
  x = of_bits(bits_of(x) & ~1ull);
#ifdef __CUDA_ARCH__
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double off = fma(-x, y, 1.0);  // below 2 ** -18; its cube is lost in y's last bit
  y = fma(y, fma(off, off, off), y);
  return fma(y, fma(-x, y, 1.0), y);
#else
  return 1.0 / x;
#endif
}

// The number nearest to 1 / x or, with the highest mantissas, the one that `divided` needs.
__device__ __forceinline__ double nearest_reciprocal(double x) {
  const double y = reciprocal(x);
  return fma(y, fma(-x, y, 1.0), y);
}

// a / b, rounded as IEEE 754 has it, for normal numbers with a normal quotient; inverse is
// nearest_reciprocal(b), which many quotients can share. The first step leaves little more than half
// an ulp. Then the remainder is exact, and as inverse * b is nearer to 1 than 1 / (B + 8), B being
// b's mantissa as a whole number, the second step errs by less than 1 / (2 B) ulp: no quotient is
// nearer than that to the middle between two numbers (Markstein again). With the few highest
// mantissas that is too close to be seen so: test_log2_exp2.py tries them.
__device__ __forceinline__ double divided(double a, double b, double inverse) {
  double q = a * inverse;
  q = fma(fma(-b, q, a), inverse, q);
  return fma(fma(-b, q, a), inverse, q);
}

// 2 ** x to 3 ulp for -1000 < x < 1000.
__device__ __forceinline__ double exp2_of(double x) {
  const double ROUND = 6755399441055744.0;  // 1.5 * 2 ** 52: a sum's whole part is in its low bits
  const double rounded = x + ROUND, f = x - (rounded - ROUND);
  // The nearest polynomial for |f| <= 0.5 with 1 at 0, off by 2.2e-16 of the value.
  double t = 7.038192839357054e-09;
  t = fma(t, f, 1.0208322608913776e-07);
  t = fma(t, f, 1.3215653515016351e-06);
  t = fma(t, f, 1.5252659429815089e-05);
  t = fma(t, f, 0.00015403529994413375);
  t = fma(t, f, 0.0013333558225796533);
  t = fma(t, f, 0.009618129107982995);
  t = fma(t, f, 0.05550410866448184);
  t = fma(t, f, 0.240226506959091);
  t = fma(t, f, 0.6931471805599492);
  return of_bits(bits_of(fma(t, f, 1.0)) + (bits_of(rounded) << 52));
}

// The same for x < 1000; from -1000 down it is 2 ** -1000.
__device__ __forceinline__ double exp2_or_little(double x) {
  const unsigned MINUS_1000 = 0xC08F4000;  // its upper half; the unit for integers compares
  const bool within = unsigned(bits_of(x) >> 32) < MINUS_1000;
  const double value = exp2_of(x);
  return within ? value : 9.332636185032189e-302;
}

// log2((1 + s) / (1 - s)) for |s| <= 0.172: 2 (s + s ** 3 / 3 + s ** 5 / 5 + ...) / ln(2).
__device__ __forceinline__ double log2_of_quotient(double s) {
  const double z = s * s;
  double t = 2 * LOG2E / 19;
  t = fma(t, z, 2 * LOG2E / 17);
  t = fma(t, z, 2 * LOG2E / 15);
  t = fma(t, z, 2 * LOG2E / 13);
  t = fma(t, z, 2 * LOG2E / 11);
  t = fma(t, z, 2 * LOG2E / 9);
  t = fma(t, z, 2 * LOG2E / 7);
  t = fma(t, z, 2 * LOG2E / 5);
  t = fma(t, z, 2 * LOG2E / 3);
  t = fma(t, z, 2 * LOG2E);
  return t * s;
}

// The logarithm of normal numbers above 0.
__device__ __forceinline__ double log2_of(double x) {
  // x = m * 2 ** n with m in [0.707, 1.414).
  const unsigned long long near = bits_of(x) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD);
  const int n = int(near >> 52) - 1023;
  const double m = of_bits(bits_of(x) - ((unsigned long long)n << 52));
  return log2_of_quotient((m - 1.0) * reciprocal(m + 1.0)) + n;
}

// log2(x / y) where neither is above 1.4 times the other.
__device__ __forceinline__ double log2_of_ratio(double x, double y) {
  return log2_of_quotient((x - y) * reciprocal(x + y));
}

// lgamma(x + 1) / ln(2) for x >= 0: Stirling's series at x + 9.
__device__ __forceinline__ double log2_factorial(double x) {
  double z = x + 1.0, product = 1.0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    product *= z;
    z += 1.0;
  }
  const double inverse = reciprocal(z), w = inverse * inverse;
  double t = 1.0 / 156;
  t = fma(t, w, -691.0 / 360360);
  t = fma(t, w, 1.0 / 1188);
  t = fma(t, w, -1.0 / 1680);
  t = fma(t, w, 1.0 / 1260);
  t = fma(t, w, -1.0 / 360);
  t = fma(t, w, 1.0 / 12);
  const double series = fma(t, inverse, 0.91893853320467274178) - z;
  return fma(z - 0.5, log2_of(z), fma(series, LOG2E, -log2_of(product)));
}

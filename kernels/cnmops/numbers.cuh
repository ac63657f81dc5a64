// Numbers of a team: TEAM neighbouring lanes of a warp that work on one region. And exp, reciprocal
// and log(x!) for the ranges met here.

constexpr unsigned FULL = 0xFFFFFFFFu;

__device__ __forceinline__ double of_lane(double value, int lane) {
  return __shfl_sync(FULL, value, lane, TEAM);
}

__device__ __forceinline__ double team_sum(double value) {
#pragma unroll
  for (int step = TEAM / 2; step; step /= 2) value += __shfl_xor_sync(FULL, value, step, TEAM);
  return value;
}

__device__ __forceinline__ double team_max(double value) {
#pragma unroll
  for (int step = TEAM / 2; step; step /= 2)
    value = fmax(value, __shfl_xor_sync(FULL, value, step, TEAM));
  return value;
}

// e ** x for -708 <= x <= 709.
__device__ __forceinline__ double exp_within(double x) {
  const double ROUND = 6755399441055744.0;  // 1.5 * 2 ** 52: a sum's whole part is in its low bits
  const double rounded = fma(x, 1.4426950408889634, ROUND);
  const double n = rounded - ROUND;
  double r = fma(n, -6.93147180369123816490e-01, x);
  r = fma(n, -1.90821492927058770002e-10, r);
  // Taylor's series: |r| <= 0.347, and r ** 14 / 14! is below 2 ** -57.
  const double r2 = r * r, r4 = r2 * r2;
  const double low = fma(r2, fma(r, 1.0 / 120, 1.0 / 24), fma(r, 1.0 / 6, 0.5));
  const double high = fma(r2, fma(r, 1.0 / 362880, 1.0 / 40320), fma(r, 1.0 / 5040, 1.0 / 720));
  const double top = fma(r2, fma(r, 1.0 / 6227020800.0, 1.0 / 479001600),
                         fma(r, 1.0 / 39916800, 1.0 / 3628800));
  const double tail = fma(r4, fma(r4, top, high), low);
  const double value = 1.0 + fma(r2, tail, r);
  const unsigned long long power = (unsigned long long)__double_as_longlong(rounded) << 52;
  return __longlong_as_double((long long)((unsigned long long)__double_as_longlong(value) + power));
}

// As exp for x <= 0; what would be below 1e-307 may be 1e-307.
__device__ __forceinline__ double exp_or_little(double x) {
  return exp_within(x > -708.0 ? x : -708.0);
}

// 1 / x to 1 ulp, for normal x whose reciprocal is normal.
__device__ __forceinline__ double reciprocal(double x) {
#ifdef __CUDA_ARCH__
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  y = fma(fma(-x, y, 1.0), y, y);
  return fma(fma(-x, y, 1.0), y, y);
#else
  return 1.0 / x;
#endif
}

// lgamma(x + 1) for x >= 0: Stirling's series at x + 9.
__device__ __forceinline__ double log_factorial(double x) {
  double z = x + 1.0, product = 1.0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    product *= z;
    z += 1.0;
  }
  const double inverse = 1.0 / z, w = inverse * inverse;
  double t = 1.0 / 156;
  t = fma(t, w, -691.0 / 360360);
  t = fma(t, w, 1.0 / 1188);
  t = fma(t, w, -1.0 / 1680);
  t = fma(t, w, 1.0 / 1260);
  t = fma(t, w, -1.0 / 360);
  t = fma(t, w, 1.0 / 12);
  const double series = fma(t, inverse, 0.91893853320467274178) - z;
  return fma(z - 0.5, log(z), series) - log(product);
}

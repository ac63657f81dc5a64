// The upper tail of Student's t; `student.py` has the same, operation by operation, and says how.

#include "log2_exp2.cuh"

constexpr double PRECISION = 1e-16, NEAR = 7.0, LARGE = 1e200, SHIFTED = 8.0;
constexpr double LOG_2 = 0.6931471805599453, HALF_LOG_PI = 0.5723649429247001;
constexpr int MOST_TERMS = 100000, CHECKED = 4, RATIOS = 7;
__device__ const double RATIO[RATIOS] = {1.0 / 64,
                                         -5.0 / 2048,
                                         61.0 / 49152,
                                         -1385.0 / 1048576,
                                         50521.0 / 20971520,
                                         -2702765.0 / 402653184,
                                         199360981.0 / 7516192768.0};

struct Scaled {
  double factor, log_scale;
};

// gamma(a + 1/2) / gamma(a) = factor * exp(log_scale)
__device__ Scaled gamma_step(double a) {
  double product = 1.0;
  for (; a < SHIFTED; a += 1.0) product *= a / (a + 0.5);
  const double w = a - 0.25, u = 1.0 / (w * w);
  double series = 0.0;
  for (int k = RATIOS - 1; k >= 0; --k) series = (series + RATIO[k]) * u;
  return {product * sqrt(w), series};
}

__device__ double near_series(double a, double y) {
  double term = 1.0, total = 1.0;
  for (int n = 0; n < MOST_TERMS; ++n) {
    term *= (a + 0.5 + n) * y / (1.5 + n);
    total += term;
    if (term <= PRECISION * total) break;
  }
  return total;
}

__device__ double far_fraction(double a, double z) {
  double top = 1.0, top_before = 0.0, below = 1.0, below_before = 1.0, out = 1.0;
  for (int n = 1; n < MOST_TERMS; ++n) {
    const double odd = (n - 0.5) * (a + n - 1.0) * z / ((a + 2 * n - 2.0) * (a + 2 * n - 1.0));
    const double even = n * (a + n - 0.5) * z / ((a + 2 * n - 1.0) * (a + 2 * n));
    top_before = top + odd * top_before;
    below_before = below + odd * below_before;
    top = top_before + even * top;
    below = below_before + even * below;
    if (n % CHECKED) continue;
    const double before = out;
    out = top / below;
    if (fabs(out - before) <= PRECISION * out) break;
    if (below > LARGE) {
      top /= LARGE, top_before /= LARGE;
      below /= LARGE, below_before /= LARGE;
    }
  }
  return out;
}

// ln(1 + x) for x above -1.
__device__ double ln_1p(double x) {
  const double y = 1.0 + x;
  return LOG_2 * log2_of(y) + (x - (y - 1.0)) / y;
}

// Minus the logarithm of the probability that Student's t exceeds sqrt(t2).
__device__ double surprise(double t2, double df) {
  if (t2 == 0.0) return LOG_2;
  const double a = 0.5 * df, u = t2 / df, y = u / (1.0 + u);
  const Scaled gamma = gamma_step(a);
  const double factor = gamma.factor * sqrt(y);
  const double scale = gamma.log_scale - HALF_LOG_PI - a * ln_1p(u);
  if (t2 * (a + 1.5) < NEAR * a)
    return LOG_2 - ln_1p(-2.0 * factor * exp2_of(scale * LOG2E) * near_series(a, y));
  return LOG_2 - scale - LOG_2 * log2_of(factor * far_fraction(a, 1.0 / u) / (a * y));
}

struct Test {
  double t2, df;
};

// Whether one test's surprise is greater than the other's; p values only where that is not clear.
__device__ bool exceeds(Test one, Test other) {
  const double more_t2 = one.t2 - other.t2, more_df = one.df - other.df;
  if (more_df >= 0.0) {
    if (more_t2 > 0.0) return true;
    if (-more_t2 * other.df * other.df > 2.0 * more_df * other.t2 * (1.0 + other.t2)) return false;
  } else {
    if (more_t2 <= 0.0) return false;
    if (more_t2 * one.df * one.df > -2.0 * more_df * one.t2 * (1.0 + one.t2)) return true;
  }
  return surprise(one.t2, one.df) > surprise(other.t2, other.df);
}

// Tracks lie one after the other in x; track t is x[offsets[t] .. offsets[t + 1]).

#include "block.cuh"

constexpr double LARGEST = 1.7976931348623157e308;
constexpr u32 MOST_THREADS = 256;  // but for blocks that work on one track or span

struct Track {  // what `look` finds
  double variance;
  u32 odd;  // whether a value is not finite
};

struct Values {
  const double* x;
  __device__ double operator()(i64 i) const { return x[i]; }
};

// The track that holds a position: the last that begins there or before.
__device__ u32 track_of(const i64* offsets, u32 tracks, i64 position) {
  u32 low = 0, high = tracks;
  while (high - low > 1) {
    const u32 middle = (low + high) / 2;
    if (offsets[middle] <= position) low = middle;
    else high = middle;
  }
  return low;
}

// The field: what a place scores, in single and in double precision.
//
// For trilinear interpolation a channel is kept as `cells`: a float4 for each node with the values
// at (y, z), (y, z + 1), (y + 1, z), (y + 1, z + 1), so that two loads bring the eight corners. It has
// one plane more along x, and nodes beyond the last repeat it. Else the nodes are read as they are.
#pragma once

#include "place.cuh"

struct Field {
  const float* nodes;    // [channels][nx][ny][nz]
  const float4* cells;   // [channels][nx + 1][ny][nz]
  double per_unit[3];    // 1 / spacing
  unsigned nx, ny, nz, unused;
};

constexpr float ROUNDER = 12582912.f;  // 1.5 · 2^23: what is added to it is rounded to an integer

// From one channel to the next, in cells or in nodes.
__device__ __forceinline__ size_t channel_size(const Field& field) {
  return size_t(LINEAR ? field.nx + 1 : field.nx) * field.ny * field.nz;
}

// A placement in Å becomes one in units of the spacing, from the origin.
__device__ __forceinline__ void to_grid(const Field& field, const double* start, Placement& out) {
  for (int axis = 0; axis < 3; ++axis) {
    for (int k = 0; k < 3; ++k) out.turn[3 * axis + k] *= field.per_unit[axis];
    out.shift[axis] = start[axis] + out.shift[axis] * field.per_unit[axis];
  }
}

// ---- single precision

// One coordinate of a place: its cell or nearest node, and how far into the cell it is.
struct Along {
  unsigned index;
  float fraction;
};

// inside: becomes false beyond the last node; margin: at most the distance to the next jump.
__device__ __forceinline__ Along along(float place, unsigned size, bool& inside, float& margin) {
  const float last = float(size - 1), clamped = fminf(fmaxf(place, 0.f), last);
  if (ZERO) {
    inside = inside && place == clamped;
    margin = fminf(margin, fminf(fabsf(place), fabsf(last - place)));
  }
  const float shifted = LINEAR ? clamped - 0.5f : clamped, rounded = shifted + ROUNDER;
  const float rest = shifted - (rounded - ROUNDER);
  if (!LINEAR) margin = fminf(margin, 0.5f - fabsf(rest));
  return {unsigned(__float_as_int(rounded) - __float_as_int(ROUNDER)), rest + 0.5f};
}

__device__ __forceinline__ float between(float low, float high, float fraction) {
  return fmaf(fraction, high - low, low);
}

__device__ __forceinline__ float between(float4 plane, float y, float z) {
  return between(between(plane.x, plane.y, z), between(plane.z, plane.w, z), y);
}

// Where an atom's value lies in every channel.
struct Spot {
  unsigned index;
  float x, y, z;
  bool inside;
};

__device__ __forceinline__ Spot spot(const Field& field, float x, float y, float z,
                                     float& margin) {
  bool inside = true;
  const Along a = along(x, field.nx, inside, margin), b = along(y, field.ny, inside, margin),
              c = along(z, field.nz, inside, margin);
  return {(a.index * field.ny + b.index) * field.nz + c.index, a.fraction, b.fraction,
          c.fraction, inside};
}

__device__ __forceinline__ float look_up(const Field& field, size_t channel, const Spot& spot) {
  float value;
  if (LINEAR) {
    const float4* cell = field.cells + channel + spot.index;
    const float4 low = __ldg(cell), high = __ldg(cell + size_t(field.ny) * field.nz);
    value = between(between(low, spot.y, spot.z), between(high, spot.y, spot.z), spot.x);
  } else {
    value = __ldg(field.nodes + channel + spot.index);
  }
  return ZERO && !spot.inside ? 0.f : value;
}

// ---- double precision

__device__ __forceinline__ double exactly_between(double low, double high, double fraction) {
  return low + fraction * (high - low);
}

__device__ __forceinline__ double exactly_between(float4 plane, double y, double z) {
  return exactly_between(exactly_between(plane.x, plane.y, z),
                         exactly_between(plane.z, plane.w, z), y);
}

__device__ __forceinline__ double clipped(double place, unsigned size) {
  const double last = size - 1;
  return place < 0 ? 0 : place > last ? last : place;
}

__device__ __forceinline__ unsigned cell_of(double place, unsigned size) {
  const unsigned cell = unsigned(place);
  return cell < size - 2 ? cell : size - 2;
}

__device__ double exact(const Field& field, size_t channel, const double* place) {
  const double x = clipped(place[0], field.nx), y = clipped(place[1], field.ny),
               z = clipped(place[2], field.nz);
  if (ZERO && (x != place[0] || y != place[1] || z != place[2])) return 0;
  if (!LINEAR) {
    const unsigned ix = unsigned(x + 0.5), iy = unsigned(y + 0.5), iz = unsigned(z + 0.5);
    return __ldg(field.nodes + channel + (ix * field.ny + iy) * field.nz + iz);
  }
  const unsigned ix = cell_of(x, field.nx), iy = cell_of(y, field.ny), iz = cell_of(z, field.nz);
  const float4* cell = field.cells + channel + (ix * field.ny + iy) * field.nz + iz;
  const float4 low = __ldg(cell), high = __ldg(cell + size_t(field.ny) * field.nz);
  return exactly_between(exactly_between(low, y - iy, z - iz),
                         exactly_between(high, y - iy, z - iz), x - ix);
}

// The field: what a place scores, in single and in double precision.
//
// For trilinear interpolation a node of [channels][nx + 1][ny][nz] is a float4, the values at (y, z),
// (y, z + 1), (y + 1, z), (y + 1, z + 1), so that two loads bring the eight corners of a cell; what would
// be beyond the last node repeats it. Else it is one float of [channels][nx][ny][nz].
#pragma once

#include "place.cuh"

#if LINEAR
using Node = float4;
#else
using Node = float;
#endif

struct Field {
  const Node* values;
  double per_unit[3];  // 1 / spacing
  double share[3];  // 1 / (nodes - 1)
  unsigned nx, ny, nz, unused;
  double spacing[3];  // and what else only the penalty needs:
  float reach[3], unused_2;  // the square root of PENALTY × length in Å
};

// From one channel to the next.
__device__ __forceinline__ size_t channel_size(const Field& field) {
  return size_t(LINEAR ? field.nx + 1 : field.nx) * field.ny * field.nz;
}

__device__ __forceinline__ const Node* channel_of(const Field& field, int channel) {
  return field.values + channel * channel_size(field);
}

// A placement in Å becomes one in units of the spacing, from the origin.
__device__ __forceinline__ void to_grid(const Field& field, const double* start, Placement& out) {
  for (int axis = 0; axis < 3; ++axis) {
    for (int k = 0; k < 3; ++k) out.turn[3 * axis + k] *= field.per_unit[axis];
    out.shift[axis] = start[axis] + out.shift[axis] * field.per_unit[axis];
  }
}

// ---- single precision; places are shares of the grid's length, so that clamping costs nothing

// What is added to round to an integer: to the nearest, or (toward zero) down.
constexpr float ROUND = 12582912.f, FLOOR = 8388608.f;

// One coordinate of a place: its nearest node, or its cell and how far into that it is.
struct Along {
  unsigned bits;  // the index + the bits of the constant
  float fraction;
};

// inside: becomes false beyond the nodes; edge: at least 1/2 less the distance to the next jump.
__device__ __forceinline__ Along along(float place, unsigned size, bool& inside, float& edge) {
  const float last = float(size - 1), share = __saturatef(place);
  if (ENDS) {
    inside = inside && place == share;
    edge = fmaxf(edge, 0.5f - last * fminf(fabsf(place), fabsf(1.f - place)));
  }
  const float shift = LINEAR ? FLOOR : ROUND;
  const float rounded = LINEAR ? __fmaf_rz(share, last, shift) : fmaf(share, last, shift);
  const float rest = fmaf(share, last, shift - rounded);
  if (!LINEAR) edge = fmaxf(edge, fabsf(rest));
  return {__float_as_uint(rounded), rest};
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
  float beyond;  // with a penalty: that of this place, should it be outside
};

// PENALTY × the squared distance from the middle of the grid, in Å.
__device__ __forceinline__ float penalty(const Field& field, float x, float y, float z) {
  const float a = (x - 0.5f) * field.reach[0], b = (y - 0.5f) * field.reach[1],
              c = (z - 0.5f) * field.reach[2];
  return fmaf(a, a, fmaf(b, b, c * c));
}

__device__ __forceinline__ Spot spot(const Field& field, float x, float y, float z, float& edge) {
  bool inside = true;
  const Along a = along(x, field.nx, inside, edge), b = along(y, field.ny, inside, edge),
              c = along(z, field.nz, inside, edge);
  const unsigned surplus = __float_as_uint(LINEAR ? FLOOR : ROUND);  // modulo 2^32, all of this
  const unsigned index = (a.bits * field.ny + b.bits) * field.nz + c.bits -
                         surplus * ((field.ny + 1) * field.nz + 1);
  const float beyond = PENALTY && !inside ? penalty(field, x, y, z) : 0.f;
  return {index, a.fraction, b.fraction, c.fraction, inside, beyond};
}

// first: whether it is an atom's first term, which has the penalty of a place outside.
__device__ __forceinline__ float look_up(const Field& field, const Node* channel, const Spot& spot,
                                         bool first) {
  const Node* node = channel + spot.index;
#if LINEAR
  const float4 low = __ldg(node), high = __ldg(node + field.ny * field.nz);
  const float value = between(between(low, spot.y, spot.z), between(high, spot.y, spot.z), spot.x);
#else
  const float value = __ldg(node);
#endif
  if (PENALTY && first && !spot.inside) return -spot.beyond;
  return ENDS && !spot.inside ? 0.f : value;
}

// ---- double precision

__device__ __forceinline__ double exactly_between(double low, double high, double fraction) {
  return low + fraction * (high - low);
}

__device__ __forceinline__ double exactly_between(float4 plane, double y, double z) {
  return exactly_between(exactly_between(plane.x, plane.y, z), exactly_between(plane.z, plane.w, z),
                         y);
}

__device__ __forceinline__ double clipped(double place, unsigned size) {
  const double last = size - 1;
  return place < 0 ? 0 : place > last ? last : place;
}

__device__ __forceinline__ unsigned cell_of(double place, unsigned size) {
  const unsigned cell = unsigned(place);
  return cell < size - 2 ? cell : size - 2;
}

__device__ __forceinline__ double exact_penalty(const Field& field, const double* place) {
  double away[3];
  for (int axis = 0; axis < 3; ++axis) {
    const unsigned size = axis == 0 ? field.nx : axis == 1 ? field.ny : field.nz;
    away[axis] = (place[axis] - (size - 1.) * 0.5) * field.spacing[axis];
  }
  return -(PENALTY) * ((away[0] * away[0] + away[1] * away[1]) + away[2] * away[2]);
}

__device__ double exact(const Field& field, const Node* channel, const double* place, bool first) {
  const double x = clipped(place[0], field.nx), y = clipped(place[1], field.ny),
               z = clipped(place[2], field.nz);
  if (ENDS && (x != place[0] || y != place[1] || z != place[2]))
    return PENALTY && first ? exact_penalty(field, place) : 0;
#if LINEAR
  const unsigned ix = cell_of(x, field.nx), iy = cell_of(y, field.ny), iz = cell_of(z, field.nz);
  const float4* cell = channel + (ix * field.ny + iy) * field.nz + iz;
  const float4 low = __ldg(cell), high = __ldg(cell + field.ny * field.nz);
  return exactly_between(exactly_between(low, y - iy, z - iz),
                         exactly_between(high, y - iy, z - iz), x - ix);
#else
  const unsigned ix = unsigned(x + 0.5), iy = unsigned(y + 0.5), iz = unsigned(z + 0.5);
  return __ldg(channel + (ix * field.ny + iy) * field.nz + iz);
#endif
}

// Maps that bound what kinds of atoms score: how far it is below their highest score.
#pragma once

#include "../ligands.cuh"

// The least shortfall of each kind in windows of nodes. The first window ends before the nodes, the last
// begins after them.
struct Pool {
  unsigned short* values;  // [kinds][size], halves of float32, and a 0; up to 2^32
  double share[3];  // 1 / (side - 1)
  unsigned window[3], side[3];  // nodes along an edge; windows along each axis
  unsigned size, unused;
};

__device__ __forceinline__ unsigned index_of(const Pool& pool, unsigned x, unsigned y, unsigned z) {
  return (x * pool.side[1] + y) * pool.side[2] + z;
}

// Which window of which kind is this thread's; false: none.
__device__ __forceinline__ bool my_window(const Pool& pool, unsigned kinds, unsigned& kind,
                                          unsigned* box) {
  const unsigned blocks = gridDim.x / kinds;
  unsigned long long index = (unsigned long long)(blockIdx.x % blocks) * THREADS + threadIdx.x;
  if (index >= pool.size) return false;
  kind = blockIdx.x / blocks;
  box[2] = take_digit(index, pool.side[2]);
  box[1] = take_digit(index, pool.side[1]);
  box[0] = unsigned(index);
  return true;
}

// At least x.
__device__ __forceinline__ float rounded_up(double x) {
  const float near = float(x);
  return near < x ? nextafterf(near, UNDECIDED) : near;
}

// The upper halves of float32 that are not negative, in their order; not below and not above x.
__device__ __forceinline__ unsigned short half_above(float x) {
  return (__float_as_uint(x) + 0xFFFF) >> 16;
}

__device__ __forceinline__ unsigned short half_below(double x) {
  const float near = float(x);
  return __float_as_uint(near > x ? nextafterf(near, 0) : near) >> 16;
}

__device__ __forceinline__ float from_half(unsigned short half) {
  return __int_as_float(int(unsigned(half) << 16));
}

// Atoms that score alike everywhere.
struct Kinds {
  const double* weights;  // float64[kinds][TERMS]
  const int* channels;    // int32[kinds][TERMS]
  unsigned* tops;         // uint32[kinds]: keys of the highest scores
  double beyond;  // outside of the grid an atom scores at most this × its first weight
  unsigned count, unused;
};

// What a kind scores at a node; on the border not less than outside.
// nodes: float32[channels][nx][ny][nz]
__device__ double fused(const Field& field, const float* nodes, const Kinds& kinds, unsigned kind,
                        const unsigned* box) {
  const unsigned sizes[3] = {field.nx, field.ny, field.nz};
  const double* weights = kinds.weights + TERMS * kind;
  unsigned node[3];
  bool outside = false, border = false;
  for (int axis = 0; axis < 3; ++axis) {
    node[axis] = min(max(box[axis], 1u) - 1, sizes[axis] - 1);
    outside = outside || node[axis] + 1 != box[axis];
    border = border || node[axis] == 0 || node[axis] == sizes[axis] - 1;
  }
  double value = 0;
  for (int term = 0; term < TERMS; ++term) {
    const size_t plane = size_t(kinds.channels[TERMS * kind + term]) * field.nx + node[0];
    value += weights[term] * nodes[(plane * field.ny + node[1]) * field.nz + node[2]];
  }
  const double beyond = kinds.beyond * weights[0];
  return !ENDS || !border ? value : outside ? beyond : fmax(value, beyond);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    find_tops(Field field, const float* nodes, Kinds kinds, Pool out) {
  unsigned kind = blockIdx.x / (gridDim.x / kinds.count), box[3], key = 0;
  if (my_window(out, kinds.count, kind, box))
    key = key_of(rounded_up(fused(field, nodes, kinds, kind, box)));
  key = __reduce_max_sync(~0u, key);
  if (threadIdx.x % 32 == 0 && key > *static_cast<volatile unsigned*>(kinds.tops + kind))
    atomicMax(kinds.tops + kind, key);
}

// Shortfalls at single nodes.
extern "C" __global__ void __launch_bounds__(THREADS)
    fuse(Field field, const float* nodes, Kinds kinds, Pool out) {
  unsigned kind, box[3];
  if (!my_window(out, kinds.count, kind, box)) return;
  const double top = score_of(kinds.tops[kind]);
  out.values[size_t(kind) * out.size + index_of(out, box[0], box[1], box[2])] =
      half_below(top - fused(field, nodes, kinds, kind, box));
}

// The least in windows, from those in windows at least half as long.
extern "C" __global__ void __launch_bounds__(THREADS) widen(Pool in, unsigned kinds, Pool out) {
  unsigned kind, box[3], first[3], last[3];
  if (!my_window(out, kinds, kind, box)) return;
  for (int axis = 0; axis < 3; ++axis) {
    const unsigned longer = out.window[axis] - in.window[axis];
    first[axis] = max(box[axis], longer) - longer;
    last[axis] = min(box[axis], in.side[axis] - 1);
  }
  const unsigned short* values = in.values + size_t(kind) * in.size;
  unsigned least = 0xFFFF;
  for (unsigned corner = 0; corner < 8; ++corner)
    least = min(
        least,
        unsigned(
            values[index_of(in, corner & 4 ? last[0] : first[0], corner & 2 ? last[1] : first[1],
                            corner & 1 ? last[2] : first[2])]));
  out.values[size_t(kind) * out.size + index_of(out, box[0], box[1], box[2])] = least;
}

// The numbered poses: index -> rotation matrix and shift, in double precision.
//
// Everything here and in `exact` of field.cuh is done in the order of reference.py and without
// fused operations (--fmad=false), so that all backends agree to the last bit.
#pragma once

struct Space {
  const double2* table;       // cosine and sine of the n angles
  const double* quaternions;  // w x y z, where there are no angles
  double step;                // of the shifts, in Å
  unsigned n, locked[2];      // angles an axis; which of them are 90° and 270°, n: none
  unsigned wrap;              // there, with α above 0, a γ below this repeats a lower index
  unsigned sides[3], unused;  // shifts along x, y and z
};

// A rotation matrix and a shift, in Å or in units of the grid's spacing.
struct Placement {
  double turn[9], shift[3];
};

// index % n; leaves index / n.
__device__ __forceinline__ unsigned take_digit(unsigned long long& index, unsigned n) {
  if (index >> 32) {
    const unsigned digit = unsigned(index % n);
    index /= n;
    return digit;
  }
  const unsigned digit = unsigned(index) % n;
  index = unsigned(index) / n;
  return digit;
}

__device__ __forceinline__ void turn_by_angles(double2 a, double2 b, double2 c, double* turn) {
  turn[0] = b.x * c.x;
  turn[1] = a.y * b.y * c.x - a.x * c.y;
  turn[2] = a.x * b.y * c.x + a.y * c.y;
  turn[3] = b.x * c.y;
  turn[4] = a.y * b.y * c.y + a.x * c.x;
  turn[5] = a.x * b.y * c.y - a.y * c.x;
  turn[6] = -b.y;
  turn[7] = a.y * b.x;
  turn[8] = a.x * b.x;
}

__device__ __forceinline__ void turn_by_quaternion(const double* q, double* turn) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  turn[0] = 1 - 2 * (y * y + z * z);
  turn[1] = 2 * (x * y - w * z);
  turn[2] = 2 * (x * z + w * y);
  turn[3] = 2 * (x * y + w * z);
  turn[4] = 1 - 2 * (x * x + z * z);
  turn[5] = 2 * (y * z - w * x);
  turn[6] = 2 * (x * z - w * y);
  turn[7] = 2 * (y * z + w * x);
  turn[8] = 1 - 2 * (x * x + y * y);
}

// A pose in Å; false where a lower index is the same pose.
__device__ __forceinline__ bool place(const Space& space, unsigned long long index,
                                      Placement& out) {
  unsigned steps[3] = {};
  for (int axis = 2; axis >= 0; --axis)
    if (space.sides[axis] > 1) steps[axis] = take_digit(index, space.sides[axis]);
  for (int axis = 0; axis < 3; ++axis)
    out.shift[axis] = (int(steps[axis]) - int(space.sides[axis] / 2)) * space.step;
  if (!EULER) {
    turn_by_quaternion(space.quaternions + 4 * index, out.turn);
    return true;
  }
  const unsigned gamma = take_digit(index, space.n), beta = take_digit(index, space.n);
  const unsigned alpha = unsigned(index);
  turn_by_angles(space.table[alpha], space.table[beta], space.table[gamma], out.turn);
  const bool locked = beta == space.locked[0] || beta == space.locked[1];
  return !(locked && alpha && gamma < space.wrap);
}

// The mean of the squared distances between the atoms of two placed bodies, as in thinning.py.
// x, y, xy: 3 x 3, means of the products of the coordinates of the one, the other, and both.
__device__ __forceinline__ double squared_distance(const double* x, const double* y,
                                                   const double* xy, const Placement& one,
                                                   const Placement& other) {
  const double spread = (x[0] + x[4] + x[8]) + (y[0] + y[4] + y[8]);
  double overlap = 0, apart = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      double turned = 0;
      for (int k = 0; k < 3; ++k) turned += one.turn[3 * i + k] * xy[3 * k + j];
      overlap += turned * other.turn[3 * i + j];
    }
    const double shift = other.shift[i] - one.shift[i];
    apart += shift * shift;
  }
  return spread - 2 * overlap + apart;
}

// The best of a block's threads, in all of them; `held` is shared memory for one of each thread.
template <class T>
__device__ T best_of_block(const T& mine, T* held) {
  __syncthreads();  // before, it may still be read
  held[threadIdx.x] = mine;
  for (unsigned step = THREADS / 2; step; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step && beats(held[threadIdx.x + step], held[threadIdx.x]))
      held[threadIdx.x] = held[threadIdx.x + step];
  }
  __syncthreads();
  return held[0];
}

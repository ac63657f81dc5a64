// AutoGrid 4's maps: the operations of cpu.py in their order, without fused ones (--fmad=false), so
// that all bits are the same. A block of threads is a block of points; it makes one map.

constexpr int NODES_OF_BLOCK = NODES * NODES * NODES;
constexpr int THREADS = SIDE * SIDE * SIDE;
constexpr int WARPS = THREADS / 32;
constexpr unsigned ALL = 0xffffffffu;

enum Role { NONE, SPHERICAL_DONOR, DONOR, SPHERICAL_ACCEPTOR, ACCEPTOR, DOUBLE_ACCEPTOR };
enum Bond { PLAIN, SHARED, SINGLE };

// What autogrid.py and blocks.py prepare; they say what it is.
struct Scene {
  const double *places, *charges, *axes, *normals, *volumes, *solvations;
  const int *kinds, *roles, *powers;
  const double *pairs, *screening, *water, *far, *ramp;
  const int* bonds;
  const double *probe_volumes, *probe_solvations, *nodes, *weights;
  double halves[3], spacing, reach;
  int atoms, probes, entries, n_kinds;
  int points[3], blocks[3];
};

// An atom near a block.
struct Near {
  double x, y, z;
  int atom, role;
};

struct Block {
  int first[3];  // point
};

__device__ __forceinline__ Block block_of(const Scene& scene, int index) {
  const int z = index % scene.blocks[2], y = index / scene.blocks[2] % scene.blocks[1];
  return {{index / scene.blocks[2] / scene.blocks[1] * SIDE, y * SIDE, z * SIDE}};
}

__device__ bool is_near(const Scene& scene, const Block& block, int atom) {
  double square = 0.0;
  for (int axis = 0; axis < 3; ++axis) {
    const double low = (block.first[axis] - scene.halves[axis]) * scene.spacing;
    const double high = (block.first[axis] + (SIDE - 1) - scene.halves[axis]) * scene.spacing;
    const double at = scene.places[3 * atom + axis];
    const double apart = max(max(low - at, at - high), 0.0);
    square += apart * apart;
  }
  return square <= scene.reach * scene.reach;
}

__device__ __forceinline__ double far_energy(const Scene& scene, double square) {
  const long long k = (__double_as_longlong(square) >> FAR_SHIFT) - FAR_FIRST;
  return scene.far[2 * k] + scene.far[2 * k + 1] * square;
}

// fields: double[blocks][NODES_OF_BLOCK], the electrostatics of far atoms. A thread a node.
extern "C" __global__ void far_fields(const Scene scene, double* fields) {
  const Block block = block_of(scene, blockIdx.x);
  const int node = threadIdx.x;
  const int index[3] = {node / (NODES * NODES), node / NODES % NODES, node % NODES};
  double at[3], sum = 0.0;
  for (int axis = 0; axis < 3; ++axis)
    at[axis] = (block.first[axis] + scene.nodes[index[axis]] - scene.halves[axis]) * scene.spacing;
  for (int atom = 0; atom < scene.atoms; ++atom) {
    const double charge = scene.charges[atom];
    if (charge == 0.0 || is_near(scene, block, atom)) continue;
    const double* place = scene.places + 3 * atom;
    const double x = place[0] - at[0], y = place[1] - at[1], z = place[2] - at[2];
    sum += charge * far_energy(scene, x * x + y * y + z * z);
  }
  fields[blockIdx.x * NODES_OF_BLOCK + node] = sum;
}

__device__ double interpolated(const Scene& scene, const double* fields, const int* in_block) {
  const double* weights = scene.weights;
  double total = 0.0;
  for (int x = 0; x < NODES; ++x) {
    double plane = 0.0;
    for (int y = 0; y < NODES; ++y) {
      double line = 0.0;
      for (int z = 0; z < NODES; ++z)
        line += weights[in_block[2] * NODES + z] * fields[(x * NODES + y) * NODES + z];
      plane += weights[in_block[1] * NODES + y] * line;
    }
    total += weights[in_block[0] * NODES + x] * plane;
  }
  return total;
}

__device__ double directed(double energy, double share) {
  const double steric = min(max(energy / 100.0, 0.0), 1.0);
  return energy * (share + (1.0 - share) * steric);
}

__device__ double share_of(const Scene& scene, int atom, double dx, double dy, double dz) {
  const int role = scene.roles[atom];
  if (role == SPHERICAL_DONOR || role == SPHERICAL_ACCEPTOR) return 1.0;
  const double *axis = scene.axes + 3 * atom, *normal = scene.normals + 3 * atom;
  const double cosine = 0.0 - (dx * axis[0] + dy * axis[1] + dz * axis[2]);
  if (role != DOUBLE_ACCEPTOR) {
    if (cosine <= 0.0) return 0.0;
    const double squared = cosine * cosine;
    return scene.powers[atom] == 2 ? squared : squared * squared;
  }
  if (cosine < -0.34202) return 0.0;
  const double nx = normal[0], ny = normal[1], nz = normal[2];
  const double out = dx * nx + dy * ny + dz * nz;
  const double level = sqrt(max(1.0 - out * out, 0.0));
  if (cosine < 0.0) {
    const double rest = 0.116978 - cosine * cosine;
    return 562.25 * (rest * rest * rest) * level;
  }
  const double x = dy * nz - dz * ny, y = dz * nx - dx * nz, z = dx * ny - dy * nx;
  const double length = x * x + y * y + z * z;
  double sine = 0.0;
  if (length > 0.0) sine = (x * axis[0] + y * axis[1] + z * axis[2]) / sqrt(length);
  sine = min(fabs(sine), 1.0);
  return (0.9 + 0.2 * sine * sqrt(1.0 - sine * sine)) * level;
}

__device__ double ramp_of(const Scene& scene, int nearest, int atom) {
  double cosine = 0.0;
  for (int axis = 0; axis < 3; ++axis)
    cosine += scene.axes[3 * nearest + axis] * scene.axes[3 * atom + axis];
  cosine = min(max(cosine, -1.0), 1.0);
  const double u = (1.0 - sqrt((1.0 + cosine) * 0.5)) * 0.5;
  double value = 0.0;
  for (int k = RAMP_TERMS - 1; k >= 0; --k) value = value * u + scene.ramp[k];
  return 0.5 - 0.5 * value;
}

// What a thread sums up at its point, for its map.
struct Sums {
  double energy = 0.0, low = MANY, high = -MANY;
  double electrostatics = 0.0, volumes = 0.0, solvations = 0.0;
};

// Adds what a near atom does to a probe, or to the charge where the probe is none.
__device__ void add(const Scene& scene, const Near& near, double x, double y, double z, int probe,
                    int nearest, Sums& sums) {
  const int atom = near.atom;
  const double square = x * x + y * y + z * z;
  if (square > CUTOFF * CUTOFF) {
    sums.electrostatics += scene.charges[atom] * far_energy(scene, square);
    return;
  }
  const double r = sqrt(square);
  const int entry = int(r * STEPS);
  sums.electrostatics += scene.charges[atom] * scene.screening[entry] / max(r, 0.5);
  sums.volumes += scene.water[entry] * scene.volumes[atom];
  sums.solvations += scene.water[entry] * scene.solvations[atom];
  if (probe >= scene.probes) return;
  const int kind = scene.kinds[atom], bond = scene.bonds[kind * scene.probes + probe];
  double energy = scene.pairs[((long long)kind * scene.entries + entry) * scene.probes + probe];
  if (bond == PLAIN) {
    sums.energy += energy;
    return;
  }
  const double inverse = r > 0.0 ? 1.0 / r : 0.0;
  const double share = share_of(scene, atom, x * inverse, y * inverse, z * inverse);
  energy = directed(energy, share);
  if (bond == SHARED) {
    const bool beside = near.role == DONOR && share > 0.0 && atom != nearest;
    sums.energy += (beside ? ramp_of(scene, nearest, atom) : 1.0) * energy;
  } else {
    sums.low = min(sums.low, energy);
    sums.high = max(sums.high, energy);
  }
}

// Lists those of THREADS atoms from `first` on that are near a block, in order; returns how many.
__device__ int list_near(const Scene& scene, const Block& block, int first, Near* listed) {
  __shared__ int counts[WARPS];
  const int atom = first + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool here = atom < scene.atoms && is_near(scene, block, atom);
  const unsigned which = __ballot_sync(ALL, here);
  __syncthreads();  // the list before is read to its end
  if (lane == 0) counts[warp] = __popc(which);
  __syncthreads();
  int before = 0, all = 0;
  for (int other = 0; other < WARPS; ++other) {
    if (other < warp) before += counts[other];
    all += counts[other];
  }
  if (here) {
    const double* place = scene.places + 3 * atom;
    listed[before + __popc(which & ((1u << lane) - 1))] = {place[0], place[1], place[2], atom,
                                                           scene.roles[atom]};
  }
  __syncthreads();
  return all;
}

// maps: float[probes + 2][nx][ny][nz]. Blocks of one map come one after the other; the last one of
// them makes the maps of electrostatics and of desolvation.
extern "C" __global__ void compute_maps(const Scene scene, const double* fields, float* maps) {
  __shared__ Near near[THREADS];
  const int blocks = scene.blocks[0] * scene.blocks[1] * scene.blocks[2];
  const int number = blockIdx.x % blocks, probe = blockIdx.x / blocks;
  const Block block = block_of(scene, number);
  const int in_block[3] = {int(threadIdx.x) / (SIDE * SIDE), int(threadIdx.x) / SIDE % SIDE,
                           int(threadIdx.x) % SIDE};
  double point[3];
  for (int axis = 0; axis < 3; ++axis)
    point[axis] = (block.first[axis] + in_block[axis] - scene.halves[axis]) * scene.spacing;

  int nearest = -1;  // of the donors
  bool shared = false;
  for (int kind = 0; kind < scene.n_kinds && probe < scene.probes; ++kind)
    shared |= scene.bonds[kind * scene.probes + probe] == SHARED;
  double least = MANY;
  for (int first = 0; shared && first < scene.atoms; first += THREADS) {
    const int count = list_near(scene, block, first, near);
    for (int j = 0; j < count; ++j) {
      if (near[j].role != SPHERICAL_DONOR && near[j].role != DONOR) continue;
      const double x = near[j].x - point[0], y = near[j].y - point[1], z = near[j].z - point[2];
      const double square = x * x + y * y + z * z;
      if (square < least) {
        least = square;
        nearest = near[j].atom;
      }
    }
  }

  Sums sums;
  for (int first = 0; first < scene.atoms; first += THREADS) {
    const int count = list_near(scene, block, first, near);
    for (int j = 0; j < count; ++j)
      add(scene, near[j], near[j].x - point[0], near[j].y - point[1], near[j].z - point[2], probe,
          nearest, sums);
  }

  long long at = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const int place = block.first[axis] + in_block[axis];
    if (place >= scene.points[axis]) return;
    at = at * scene.points[axis] + place;
  }
  const long long points = (long long)scene.points[0] * scene.points[1] * scene.points[2];
  const auto write = [&](int map, double value) {
    maps[map * points + at] = float(rint(value * SCALE) / SCALE + 0.0);
  };
  if (probe == scene.probes) {
    const double far = interpolated(scene, fields + number * NODES_OF_BLOCK, in_block);
    write(probe, sums.electrostatics + far);
    write(probe + 1, sums.volumes * POLARITY);
    return;
  }
  double energy = sums.energy;
  if (sums.low < MANY) energy += sums.low + sums.high;
  energy += sums.volumes * scene.probe_solvations[probe];
  energy += sums.solvations * scene.probe_volumes[probe];
  write(probe, energy);
}

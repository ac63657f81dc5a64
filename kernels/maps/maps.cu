// AutoGrid 4's maps: the operations of cpu.py in their order, without fused ones (--fmad=false), so
// that all bits are the same. A thread is a point of one map.

enum Bond { PLAIN, SHARED, SINGLE };

// What autogrid.py prepares; it says what they are.
struct Atom {
  double x, y, z, charge, volume, solvation;
  double frame[3][3];
  int kind, power;
};

struct MapInputs {
  const double *x, *y, *z;
  const Atom* atoms;
  const int* donors;
  const double* probes;
  const int* bonds;
  const double *pairs, *screening, *water, *far, *ramp;
  int n_atoms, n_donors, n_probes, nx, ny, nz;
};

__device__ double dot(const double* vector, double x, double y, double z) {
  return x * vector[0] + y * vector[1] + z * vector[2];
}

__device__ double far_energy(const MapInputs& inputs, double square) {
  return inputs.far[max((__double_as_longlong(square) >> FAR_SHIFT) - FAR_FIRST, 0ll)];
}

__device__ double directed(double energy, double share) {
  const double steric = min(max(energy / 100.0, 0.0), 1.0);
  return energy * (share + (1.0 - share) * steric);
}

__device__ double ramp_of(const Atom& nearest, const Atom& atom, const double* terms) {
  const double* one = nearest.frame[0];
  const double cosine = min(max(dot(atom.frame[0], one[0], one[1], one[2]), -1.0), 1.0);
  const double u = (1.0 - sqrt((1.0 + cosine) * 0.5)) * 0.5;
  double value = 0.0;
  for (int k = RAMP_TERMS - 1; k >= 0; --k) value = value * u + terms[k];
  return 0.5 - 0.5 * value;
}

__device__ double share_of(const Atom& atom, double x, double y, double z) {
  if (atom.power == 0) return 1.0;
  const double cosine = 0.0 - dot(atom.frame[0], x, y, z);
  if (atom.power != LONE_PAIRS) {
    const double squared = max(cosine, 0.0) * max(cosine, 0.0);
    return atom.power == 2 ? squared : squared * squared;
  }
  if (cosine < -0.34202) return 0.0;
  const double out = dot(atom.frame[1], x, y, z);
  const double level = sqrt(max(1.0 - out * out, 0.0));
  if (cosine < 0.0) {
    const double rest = 0.116978 - cosine * cosine;
    return 562.25 * (rest * rest * rest) * level;
  }
  const double along = fabs(dot(atom.frame[2], x, y, z));
  const double sine = level > 0.0 ? min(along / level, 1.0) : 0.0;
  return (0.9 + 0.2 * sine * sqrt(1.0 - sine * sine)) * level;
}

// maps: float[probes + 2][nx][ny][nz]. The threads after those of the probes make the maps of
// electrostatics and of desolvation.
extern "C" __global__ void compute_maps(const MapInputs inputs, float* maps) {
  const long long points = (long long)inputs.nx * inputs.ny * inputs.nz;
  const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x, at = thread % points;
  const int probe = thread / points;
  if (probe > inputs.n_probes) return;
  const double px = inputs.x[at / inputs.nz / inputs.ny], py = inputs.y[at / inputs.nz % inputs.ny];
  const double pz = inputs.z[at % inputs.nz];

  int nearest = -1;
  double least = MANY;
  for (int k = 0; k < inputs.n_donors && probe < inputs.n_probes; ++k) {
    const Atom& donor = inputs.atoms[inputs.donors[k]];
    const double x = donor.x - px, y = donor.y - py, z = donor.z - pz;
    const double square = x * x + y * y + z * z;
    if (square < least) {
      least = square;
      nearest = inputs.donors[k];
    }
  }

  double energy = 0.0, low = MANY, high = -MANY;
  double electrostatics = 0.0, volumes = 0.0, solvations = 0.0;
  for (int i = 0; i < inputs.n_atoms; ++i) {
    const Atom& atom = inputs.atoms[i];
    const double x = atom.x - px, y = atom.y - py, z = atom.z - pz;
    const double square = x * x + y * y + z * z;
    if (square >= CUTOFF * CUTOFF) {
      if (probe == inputs.n_probes) electrostatics += atom.charge * far_energy(inputs, square);
      continue;
    }
    const double r = sqrt(square);
    const int entry = int(r * STEPS);
    volumes += inputs.water[entry] * atom.volume;
    solvations += inputs.water[entry] * atom.solvation;
    if (probe == inputs.n_probes) {
      electrostatics += atom.charge * inputs.screening[entry] / max(r, 0.5);
      continue;
    }
    double pair = inputs.pairs[((long long)atom.kind * ENTRIES + entry) * inputs.n_probes + probe];
    const int bond = inputs.bonds[atom.kind * inputs.n_probes + probe];
    if (bond == PLAIN) {
      energy += pair;
      continue;
    }
    const double inverse = r > 0.0 ? 1.0 / r : 0.0;
    const double share = share_of(atom, x * inverse, y * inverse, z * inverse);
    pair = directed(pair, share);
    if (bond == SHARED) {
      const bool alone = atom.power == 0 || share <= 0.0 || i == nearest;
      energy += (alone ? 1.0 : ramp_of(inputs.atoms[nearest], atom, inputs.ramp)) * pair;
    } else {
      low = min(low, pair);
      high = max(high, pair);
    }
  }

  const auto write = [&](int map, double value) {
    maps[map * points + at] = float(rint(value * SCALE) / SCALE + 0.0);
  };
  if (probe == inputs.n_probes) {
    write(probe, electrostatics);
    write(probe + 1, volumes * POLARITY);
    return;
  }
  if (low < MANY) energy += low + high;
  energy += volumes * inputs.probes[2 * probe];
  energy += solvations * inputs.probes[2 * probe + 1];
  write(probe, energy);
}

// The search for the best poses: scores in single precision, then those in double precision that
// bounds.cuh does not rule out.
//
// EULER: rotations by angles, else by quaternions. LINEAR: trilinear interpolation, else the nearest
// node. ENDS: atoms outside of the grid score nothing instead of as at its border; with a PENALTY
// above 0 they score -PENALTY d², d the distance in Å from its middle. TERMS: of each atom, 1 to 3.
// THREADS: of a block. SHARE: scores that a block settles. TILE_A, TILE_B, TILE_C: rotations along α, β, γ that a warp takes together.
#include "bounds.cuh"
#include "ligands.cuh"

constexpr unsigned LANES = 32, WARPS = THREADS / LANES;
static_assert(TILE_A * TILE_B * TILE_C == LANES && THREADS % LANES == 0);
constexpr unsigned ATOMS = 128;  // in shared memory at a time
constexpr unsigned UNROLL = TERMS == 1 ? 4 : 2;

// The poses [begin, begin + poses) and how they are given to warps: a warp takes a tile of
// neighbouring rotations, whose atoms lie in few cells of the grid, where whole planes of one α are
// searched, or else consecutive poses.
struct Part {
  long long begin, poses;
  unsigned plane, tiles_b, tiles_c, unused;  // first α, tiles along β and γ; no tiles: 0
};

// Notes a decided pose's score; all lanes of a warp come here with the same ligand.
__device__ __forceinline__ void note(float score, unsigned* greatest) {
  const bool counts = score > STRUCK && score < UNDECIDED;
  const unsigned key = __reduce_max_sync(~0u, counts ? key_of(score) : 0);
  if (threadIdx.x % LANES == 0 && key > *static_cast<volatile unsigned*>(greatest))
    atomicMax(greatest, key);
}

// Which pose of the part this thread scores; poses or more: none.
__device__ __forceinline__ unsigned long long pose_of(const Space& space, const Part& part,
                                                      unsigned block) {
  const unsigned lane = threadIdx.x % LANES;
  const unsigned long long warp = (unsigned long long)block * WARPS + threadIdx.x / LANES;
  if (!part.tiles_c) return warp * LANES + lane;
  const unsigned long long row = warp / part.tiles_c;
  const unsigned c = unsigned(warp % part.tiles_c) * TILE_C + lane % TILE_C;
  const unsigned b = unsigned(row % part.tiles_b) * TILE_B + lane / TILE_C % TILE_B;
  const unsigned a = part.plane + unsigned(row / part.tiles_b) * TILE_A + lane / (TILE_C * TILE_B);
  if (a >= space.n || b >= space.n || c >= space.n) return ~0ull;
  // Before the part's first pose this wraps around to a large number.
  return ((unsigned long long)a * space.n + b) * space.n + c - part.begin;
}

struct alignas(16) Atom {
  float x, y, z;
  float weights[TERMS];
  const Node* channels[TERMS];
};

__device__ __forceinline__ Atom fetch(const Field& field, const Ligands& ligands, long long atom) {
  const double* place = ligands.places + 3 * atom;
  Atom out = {float(place[0]), float(place[1]), float(place[2])};
  for (int term = 0; term < TERMS; ++term) {
    out.weights[term] = float(ligands.weights[TERMS * atom + term]);
    out.channels[term] = channel_of(field, ligands.channels[TERMS * atom + term]);
  }
  return out;
}

// A placement in single precision, in shares of the grid's length.
struct Turn {
  float turn[9], start[3];

  __device__ __forceinline__ Turn(const Field& field, const Placement& placement) {
    for (int axis = 0; axis < 3; ++axis) {
      for (int k = 3 * axis; k < 3 * axis + 3; ++k)
        turn[k] = float(placement.turn[k] * field.share[axis]);
      start[axis] = float(placement.shift[axis] * field.share[axis]);
    }
  }

  __device__ __forceinline__ float along(const Atom& atom, int axis) const {
    const float* row = turn + 3 * axis;
    return fmaf(row[0], atom.x, fmaf(row[1], atom.y, fmaf(row[2], atom.z, start[axis])));
  }
};

// One thread a pose; a block has one ligand.
// scores: float32[ligands][poses]; greatest: uint32[ligands], keys of the decided poses' highest.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    score(Space space, Field field, Ligands ligands, Part part, float* scores, unsigned* greatest) {
  __shared__ Atom atoms[ATOMS];
  const unsigned blocks = blocks_of_each(ligands), ligand = blockIdx.x / blocks;
  const unsigned long long pose = pose_of(space, part, blockIdx.x % blocks);
  const bool mine = pose < (unsigned long long)part.poses;
  Placement placement;
  const bool first = place(space, part.begin + (mine ? pose : 0), placement);
  to_grid(field, ligands.starts + 3 * ligand, placement);
  const Turn turn(field, placement);
  float sum = 0, edge = 0;
  const long long end = ligands.offsets[ligand + 1];
  for (long long begin = ligands.offsets[ligand]; begin < end; begin += ATOMS) {
    const unsigned count = unsigned(min(end - begin, (long long)ATOMS));
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += THREADS)
      atoms[i] = fetch(field, ligands, begin + i);
    __syncthreads();
#pragma unroll UNROLL
    for (unsigned i = 0; i < count; ++i) {
      const Atom& atom = atoms[i];
      const Spot here = spot(field, turn.along(atom, 0), turn.along(atom, 1), turn.along(atom, 2),
                             edge);
      for (int term = 0; term < TERMS; ++term)
        sum = fmaf(atom.weights[term], look_up(field, atom.channels[term], here, term == 0), sum);
    }
  }
  if ((!LINEAR || ENDS) && edge >= 0.5f - ligands.doubt[ligand]) sum = UNDECIDED;
  if (!first || !mine) sum = STRUCK;
  if (mine) scores[ligand * part.poses + pose] = sum;
  note(sum, greatest + ligand);
}

// What was taken already.
struct Taken {
  const double* moments;  // float64[n][9] of the ligands
  const long long* poses;  // int64[ranks][n]; -1: none
  double min_squared;  // of the distance of other poses
  unsigned ranks, unused;
};

// Whether a pose of a ligand was taken, or is too near to one that was.
__device__ bool is_near(const Space& space, const Ligands& ligands, const Taken& taken,
                        unsigned ligand, long long pose) {
  Placement one, other;
  place(space, pose, other);
  for (unsigned rank = 0; rank < taken.ranks; ++rank) {
    const long long mine = taken.poses[size_t(rank) * ligands.count + ligand];
    if (mine < 0) continue;
    place(space, mine, one);
    const double* moments = taken.moments + 9 * ligand;
    const double distance = squared_distance(moments, moments, moments, one, other);
    if (distance < taken.min_squared || pose == mine) return true;
  }
  return false;
}

// Strikes out the poses that were taken of each ligand and those near to them; notes what is left.
extern "C" __global__ void __launch_bounds__(THREADS)
    strike(Space space, Ligands ligands, Part part, Taken taken, float* scores,
           unsigned* greatest) {
  const unsigned blocks = blocks_of_each(ligands), ligand = blockIdx.x / blocks;
  const long long pose = (long long)(blockIdx.x % blocks) * THREADS + threadIdx.x;
  float score = STRUCK;
  if (pose < part.poses) {
    float* place_of_score = scores + ligand * part.poses + pose;
    score = *place_of_score;
    if (score > STRUCK && is_near(space, ligands, taken, ligand, part.begin + pose))
      *place_of_score = score = STRUCK;
  }
  note(score, greatest + ligand);
}

struct Winner {
  long long pose;  // -1: there is none
  double score;
};

__device__ __forceinline__ bool beats(const Winner& one, const Winner& other) {
  if (one.pose < 0 || other.pose < 0) return one.pose >= 0;
  return one.score > other.score || (one.score == other.score && one.pose < other.pose);
}

// A block looks at SHARE consecutive scores. Those that are not below the ligand's threshold are
// listed first, in any order, because undecided poses lie together: each thread then takes one.
// winners: [ligands][blocks].
extern "C" __global__ void __launch_bounds__(THREADS)
    settle(Space space, Field field, Ligands ligands, Part part, const float* thresholds,
           const float* scores, Winner* winners) {
  __shared__ unsigned listed[SHARE], count;
  __shared__ Winner held[THREADS];
  const unsigned blocks = blocks_of_each(ligands), ligand = blockIdx.x / blocks;
  const long long begin = (long long)(blockIdx.x % blocks) * SHARE;
  const float* mine = scores + ligand * part.poses + begin;
  const unsigned poses = unsigned(min(part.poses - begin, (long long)SHARE));
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < poses; i += THREADS)
    if (mine[i] > STRUCK && mine[i] >= thresholds[ligand]) listed[atomicAdd(&count, 1u)] = i;
  __syncthreads();
  Winner winner = {-1, 0};
  for (unsigned k = threadIdx.x; k < count; k += THREADS) {
    const long long pose = part.begin + begin + listed[k];
    const Winner next = {pose, exact_score(space, field, ligands, ligand, pose)};
    if (beats(next, winner)) winner = next;
  }
  winner = best_of_block(winner, held);
  if (threadIdx.x == 0) winners[blockIdx.x] = winner;
}

// The best of `many` winners of each ligand and, but for a round's first part, of the best so far.
// One block a ligand.
extern "C" __global__ void __launch_bounds__(THREADS)
    choose(const Winner* winners, long long many, unsigned first, Winner* best) {
  __shared__ Winner held[THREADS];
  Winner winner = {-1, 0};
  if (threadIdx.x == 0 && !first) winner = best[blockIdx.x];
  for (long long i = threadIdx.x; i < many; i += THREADS) {
    const Winner next = winners[blockIdx.x * many + i];
    if (beats(next, winner)) winner = next;
  }
  winner = best_of_block(winner, held);
  if (threadIdx.x == 0) best[blockIdx.x] = winner;
}

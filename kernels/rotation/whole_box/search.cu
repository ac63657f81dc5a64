// The search of a box for all poses of a band: bounds of blocks of 8³, 4³, 2³ shifts and 1, then scores.
// Why no pose of the band is passed over: cuda.py.
//
// EULER, LINEAR, ENDS, PENALTY, TERMS, THREADS: as for ../search.cu. BOUNDED: atoms of a body that have
// bounds of their own.
#include "../exact.cuh"
#include "../ligands.cuh"
#include "list.cuh"
#include "maps.cuh"
#include "thinning.cuh"

constexpr unsigned LANES = 32, WARPS = THREADS / LANES, CHILDREN = 8, FAMILIES = LANES / CHILDREN;
constexpr unsigned LEVELS = 4, WIDEST = 8;  // shifts along the edge of the blocks of level 0
constexpr unsigned GROUP = 4;  // atoms whose bounds are added before the sum is looked at
constexpr unsigned GROUPS = (BOUNDED + GROUP - 1) / GROUP;
constexpr float UNIT = 1.f / (1 << 24);

// ---- atoms of bodies in the order in which their bounds are added

struct Order {
  const int* begins;  // int32[bodies + 1]: of the atoms with bounds of their own
  const int* atoms;  // their numbers
  const int* kinds;
  const double* spare;  // float64[bodies]: what the other atoms score at most, and for rounding
  const unsigned* tops;  // uint32[kinds]: `Kinds`
};

// ---- the search

// Which blocks are looked at. An item is 32 blocks of a body in a rotation; rotations come in an
// order in which those that follow each other are not alike.
struct Walk {
  unsigned long long begin, end;  // items
  unsigned long long rotations, stride;  // the next: stride further on, modulo rotations
  unsigned bodies,
      greedy;  // greedy: only the best four of 32 blocks and of their parts are looked at
  unsigned blocks[3], chunks;  // of a body in a rotation: blocks along each axis, items
};

struct Bounds {
  Pool pools[LEVELS];
  double low;  // that boxes begin before a block's lowest place
  double factor;  // by which least shortfalls may be above the true ones
};

// A block of shifts by its lowest.
struct Block {
  unsigned at[3];
};

struct alignas(16) Atom {
  float place[3], top;
};

// A body in a rotation, as a warp sees it.
struct Turned {
  const Space& space;
  const Field& field;
  const Ligands& ligands;
  const Order& order;
  const Bounds& bounds;
  const Band& band;
  const Atom* atoms;  // with bounds; places from the centroid in units of the spacing, and the
  // highest score
  const unsigned* kinds;
  // Sums after each group, of the blocks that the lanes have at each level but the last.
  float (*sums)[GROUPS][LANES];
  unsigned long long rotation;
  unsigned body, count, greedy;
  double origin[3], step[3];  // the lowest shift's place and the way to the next, the same units

  double most;  // what the body scores at most
  float allowed;  // the most that the shortfalls of a pose in the band so far sum up to

  // The least score of the band so far; for greedy ones the best score so far.
  __device__ double least_score() const {
    const double best = wide_score_of(*static_cast<volatile unsigned long long*>(band.best));
    return best - (greedy ? 0 : band.width);
  }

  // Rounding: each term of a sum is a difference, and all are at least 0, so that an addition errs
  // by at most UNIT × the sum. There are count of them for a block, and twice as many for what is
  // left of its parent's sum.
  __device__ void update_allowed() {
    const double sum = most - least_score();
    allowed = rounded_up(sum * (1 + (4. * count + 8) * UNIT) * bounds.factor);
  }

  // at: the place of the centroid, counted from the first window
  __device__ float bound_of_atom(const Pool& pool, unsigned kind, const float* at,
                                 const float* place) const {
    unsigned index = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const float last = float(pool.side[axis] - 1);
      const float low = fminf(fmaxf(at[axis] + place[axis], 0.f), last);
      index = index * pool.side[axis] + __float_as_uint(__fmaf_rz(low, 1.f, FLOOR));
    }
    const unsigned surplus = __float_as_uint(FLOOR);  // modulo 2^32, all of this
    index -= surplus * ((pool.side[1] + 1) * pool.side[2] + 1);
    return from_half(__ldg(pool.values + size_t(kind) * pool.size + index));
  }

  // The sum of the least shortfalls in a block, or inf where it is more than is allowed together
  // with what atoms that are not looked up yet fall short by in the block's parent.
  template <unsigned LEVEL>
  __device__ float shortfall(const Block& block, unsigned parent, float of_parent) const {
    const Pool& pool = bounds.pools[LEVEL];
    const unsigned lane = threadIdx.x % LANES;
    float at[3], sum = 0;
    for (int axis = 0; axis < 3; ++axis)
      at[axis] = float(origin[axis] + block.at[axis] * step[axis] + pool.window[axis]);
    for (unsigned group = 0; group * GROUP < count; ++group) {
#pragma unroll
      for (unsigned i = group * GROUP; i < (group + 1) * GROUP; ++i)
        if (i < count) sum += atoms[i].top - bound_of_atom(pool, kinds[i], at, atoms[i].place);
      float left = 0;
      if constexpr (LEVEL > 0) left = of_parent - sums[LEVEL - 1][group][parent];
      if (sum + left > allowed) return UNDECIDED;
      if constexpr (LEVEL + 1 < LEVELS) sums[LEVEL][group][lane] = sum;
    }
    return sum;
  }

  // Scores a pose and lists it, if it is in the band so far.
  __device__ void score(const Block& shift) const {
    unsigned long long pose = rotation;
    for (int axis = 0; axis < 3; ++axis) pose = pose * space.sides[axis] + shift.at[axis];
    Placement placement;
    place(space, pose, placement);
    to_grid(field, ligands.starts + 3 * body, placement);
    double sum = 0;
    const int begin = order.begins[body];
    for (unsigned i = 0; i < count; ++i) {
      sum += atoms[i].top - exact_atom(field, ligands, placement, order.atoms[begin + i]);
      if (sum > allowed) return;
    }
    const double exact = exact_score(space, field, ligands, body, pose);
    const unsigned long long key = wide_key_of(exact);
    if (key > *static_cast<volatile unsigned long long*>(band.best)) atomicMax(band.best, key);
    if (greedy || exact < least_score()) return;
    const unsigned long long number = atomicAdd(band.count, 1ull);
    if (number < band.most) band.listed[number] = {(long long)pose, exact, body};
  }

  // Which lanes' blocks are looked into.
  __device__ unsigned chosen(float shortfall) const {
    const unsigned good = __ballot_sync(~0u, shortfall < UNDECIDED);
    if (!greedy) return good;
    unsigned best = 0;
    for (unsigned taken = 0; taken < FAMILIES; ++taken) {
      const bool left = shortfall < UNDECIDED && !(best >> threadIdx.x % LANES & 1);
      const unsigned key = left ? key_of(-shortfall) : 0, highest = __reduce_max_sync(~0u, key);
      const unsigned same = __ballot_sync(~0u, key && key == highest);
      best |= same & (0 - same);
    }
    return best;
  }
};

__device__ __forceinline__ unsigned without_lowest(unsigned mask) { return mask & (mask - 1); }

// Looks into the blocks of the lanes in `mask`, four at a time: a lane takes one of eight parts.
// sum: of the least shortfalls in the block of this lane
template <unsigned LEVEL>
__device__ void descend(Turned& turned, unsigned mask, const Block& mine, float sum) {
  const unsigned lane = threadIdx.x % LANES, part = lane % CHILDREN;
  const unsigned edge = WIDEST >> LEVEL;
  while (mask) {
    unsigned from = mask;
    for (unsigned skip = 0; skip < lane / CHILDREN; ++skip) from = without_lowest(from);
    for (unsigned taken = 0; taken < FAMILIES; ++taken) mask = without_lowest(mask);
    bool there = from != 0;
    const unsigned parent = there ? __ffs(from) - 1 : 0;
    Block block;
    for (int axis = 0; axis < 3; ++axis) {
      const unsigned low = __shfl_sync(~0u, mine.at[axis], parent);
      block.at[axis] = low + (part >> (2 - axis) & 1) * edge;
      there = there && block.at[axis] < turned.space.sides[axis];
    }
    const float of_parent = __shfl_sync(~0u, sum, parent);
    if (LEVEL + 2 < LEVELS) turned.update_allowed();
    __syncwarp();  // the sums of the level above are there, and those of this one no more read
    const float found = there ? turned.shortfall<LEVEL>(block, parent, of_parent) : UNDECIDED;
    if constexpr (LEVEL + 1 < LEVELS)
      descend<LEVEL + 1>(turned, turned.chosen(found), block, found);
    else if (found < UNDECIDED) turned.score(block);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 7)
    search(Space space, Field field, Ligands ligands, Order order, Bounds bounds, Walk walk,
           Band band) {
  __shared__ Atom held[WARPS][BOUNDED];
  __shared__ unsigned kinds[WARPS][BOUNDED];
  __shared__ float sums[WARPS][LEVELS - 1][GROUPS][LANES];
  const unsigned warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const unsigned long long item = walk.begin + (unsigned long long)blockIdx.x * WARPS + warp;
  if (item >= walk.end) return;
  const unsigned chunk = unsigned(item % walk.chunks);
  const unsigned long long turn = item / walk.chunks;
  const unsigned body = unsigned(turn % walk.bodies);
  const unsigned long long rotation = turn / walk.bodies * walk.stride % walk.rotations;

  const unsigned long long shifts = (unsigned long long)space.sides[0] * space.sides[1] *
                                    space.sides[2];
  Placement placement;
  if (!place(space, rotation * shifts, placement)) return;
  to_grid(field, ligands.starts + 3 * body, placement);
  const int begin = order.begins[body];
  const unsigned count = unsigned(order.begins[body + 1] - begin);
  for (unsigned i = lane; i < count; i += LANES) {
    const double* at = ligands.places + 3ll * order.atoms[begin + i];
    Atom& atom = held[warp][i];
    for (int axis = 0; axis < 3; ++axis) {
      const double* row = placement.turn + 3 * axis;
      atom.place[axis] = float(row[0] * at[0] + row[1] * at[1] + row[2] * at[2]);
    }
    kinds[warp][i] = unsigned(order.kinds[begin + i]);
    atom.top = score_of(order.tops[kinds[warp][i]]);
  }
  __syncwarp();

  Turned turned = {space,       field,      ligands,  order, bounds, band,       held[warp],
                   kinds[warp], sums[warp], rotation, body,  count,  walk.greedy};
  for (int axis = 0; axis < 3; ++axis) {
    turned.origin[axis] = placement.shift[axis] - bounds.low;
    turned.step[axis] = space.step * field.per_unit[axis];
  }
  turned.most = order.spare[body];
  for (unsigned i = 0; i < count; ++i)
    turned.most += held[warp][i].top + fabsf(held[warp][i].top) / (1ll << 40);
  turned.update_allowed();
  const unsigned number = chunk * LANES + lane, yz = walk.blocks[1] * walk.blocks[2];
  const Block block = {{number / yz * WIDEST, number / walk.blocks[2] % walk.blocks[1] * WIDEST,
                        number % walk.blocks[2] * WIDEST}};
  const bool there = number < walk.blocks[0] * yz;
  const float sum = there ? turned.shortfall<0>(block, 0, 0) : UNDECIDED;
  descend<1>(turned, turned.chosen(sum), block, sum);
}

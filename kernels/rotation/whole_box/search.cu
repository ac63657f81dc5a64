// The search of a box for all poses of a band: bounds of blocks of 8³, 4³, 2³ shifts and 1, then scores.
// Why no pose of the band is passed over: cuda.py.
//
// EULER, LINEAR, ENDS, PENALTY, TERMS, THREADS: as for ../search.cu. BOUNDED: atoms of a body that have
// bounds of their own.
#include "../exact.cuh"
#include "../ligands.cuh"

#define INFINITE __longlong_as_double(0x7FF0000000000000ll)

constexpr unsigned LANES = 32, WARPS = THREADS / LANES, CHILDREN = 8, FAMILIES = LANES / CHILDREN;
constexpr unsigned LEVELS = 4, WIDEST = 8;  // shifts along the edge of the blocks of level 0
constexpr unsigned GROUP = 4;  // atoms whose bounds are added before the sum is looked at
constexpr unsigned GROUPS = (BOUNDED + GROUP - 1) / GROUP;
constexpr float UNIT = 1.f / (1 << 24);

// ---- bounds of kinds of atoms

// The highest value that a kind of atoms has in a box of nodes, by the lowest corner of the box. The
// first box ends before the nodes, the last begins after them.
struct Pool {
  float* values;  // float32[kinds][sides]
  unsigned window[3], side[3];  // nodes along an edge of a box; boxes
};

__device__ __forceinline__ size_t boxes_of(const Pool& pool) {
  return size_t(pool.side[0]) * pool.side[1] * pool.side[2];
}

__device__ __forceinline__ size_t index_of(const Pool& pool, unsigned x, unsigned y, unsigned z) {
  return size_t(x * pool.side[1] + y) * pool.side[2] + z;
}

// Which box of which kind this thread makes; false: none.
__device__ __forceinline__ bool my_box(const Pool& pool, unsigned kinds, unsigned& kind,
                                       unsigned* box) {
  const unsigned blocks = gridDim.x / kinds;
  size_t index = size_t(blockIdx.x % blocks) * THREADS + threadIdx.x;
  if (index >= boxes_of(pool)) return false;
  kind = blockIdx.x / blocks;
  box[2] = unsigned(index % pool.side[2]);
  index /= pool.side[2];
  box[1] = unsigned(index % pool.side[1]);
  box[0] = unsigned(index / pool.side[1]);
  return true;
}

// At least x.
__device__ __forceinline__ float rounded_up(double x) {
  const float near = float(x);
  return near < x ? nextafterf(near, UNDECIDED) : near;
}

// What an atom scores at most that is outside, beyond a node on the border or outside along some axes.
__device__ __forceinline__ double most_outside(const Field& field, const bool* beyond,
                                               double weight) {
  const unsigned sizes[3] = {field.nx, field.ny, field.nz};
  double least = INFINITE;
  for (int axis = 0; axis < 3; ++axis) {
    const double half = (sizes[axis] - 1.) * 0.5 * field.spacing[axis];
    if (beyond[axis]) least = fmin(least, half * half);
  }
  return PENALTY ? -(PENALTY)*least * weight : 0;
}

// Values of kinds at single nodes, and the highest of each; on the border it is not below what is
// scored outside. atoms: one of each kind.
// nodes: float32[channels][nx][ny][nz]; tops: uint32[kinds], keys of scores.
extern "C" __global__ void __launch_bounds__(THREADS)
    fuse(Field field, Ligands ligands, const float* nodes, const int* atoms, unsigned kinds,
         Pool out, unsigned* tops) {
  unsigned kind = 0, box[3], key = 0;
  if (my_box(out, kinds, kind, box)) {
    const unsigned sizes[3] = {field.nx, field.ny, field.nz};
    bool beyond[3], outside = false, border = false;
    unsigned node[3];
    for (int axis = 0; axis < 3; ++axis) {
      node[axis] = min(max(box[axis], 1u) - 1, sizes[axis] - 1);
      beyond[axis] = node[axis] + 1 != box[axis];
      outside = outside || beyond[axis];
    }
    for (int axis = 0; axis < 3; ++axis) {
      beyond[axis] = outside ? beyond[axis] : node[axis] == 0 || node[axis] == sizes[axis] - 1;
      border = border || beyond[axis];
    }
    const size_t terms = size_t(TERMS) * atoms[kind];
    double value = 0;
    for (int term = 0; term < TERMS; ++term) {
      const size_t plane = size_t(ligands.channels[terms + term]) * field.nx + node[0];
      value += ligands.weights[terms + term] *
               nodes[(plane * field.ny + node[1]) * field.nz + node[2]];
    }
    if (ENDS && border) {
      const double most = most_outside(field, beyond, ligands.weights[terms]);
      value = outside ? most : fmax(value, most);
    }
    const float bound = rounded_up(value);
    out.values[kind * boxes_of(out) + index_of(out, box[0], box[1], box[2])] = bound;
    key = key_of(bound);
  }
  kind = blockIdx.x / (gridDim.x / kinds);
  key = __reduce_max_sync(~0u, key);
  if (threadIdx.x % LANES == 0 && key > *static_cast<volatile unsigned*>(tops + kind))
    atomicMax(tops + kind, key);
}

// Bounds of boxes, from those of boxes with edges at least half as long.
extern "C" __global__ void __launch_bounds__(THREADS) widen(Pool in, unsigned kinds, Pool out) {
  unsigned kind, box[3], first[3], last[3];
  if (!my_box(out, kinds, kind, box)) return;
  for (int axis = 0; axis < 3; ++axis) {
    const int begin = int(box[axis]) - int(out.window[axis]) + int(in.window[axis]);
    const int end = begin + int(out.window[axis]) - int(in.window[axis]);
    first[axis] = unsigned(max(begin, 0));
    last[axis] = min(unsigned(end), in.side[axis] - 1);
  }
  const float* values = in.values + kind * boxes_of(in);
  float highest = STRUCK;
  for (unsigned corner = 0; corner < 8; ++corner)
    highest = fmaxf(
        highest,
        values[index_of(in, corner & 4 ? last[0] : first[0], corner & 2 ? last[1] : first[1],
                        corner & 1 ? last[2] : first[2])]);
  out.values[kind * boxes_of(out) + index_of(out, box[0], box[1], box[2])] = highest;
}

// ---- atoms of bodies in the order in which their bounds are added

struct Order {
  const int* begins;  // int32[bodies + 1]: of the atoms with bounds of their own
  const int* atoms;  // their numbers
  const int* kinds;
  const double* spare;  // float64[bodies]: what the other atoms score at most, and for rounding
  const unsigned* tops;  // uint32[kinds]: keys of the highest scores
};

// ---- the search

// Scores in double precision as unsigned integers, in their order, all above 0, which is none.
__device__ __forceinline__ unsigned long long wide_key_of(double score) {
  const unsigned long long bits = __double_as_longlong(score);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ __forceinline__ double wide_score_of(unsigned long long key) {
  if (!key) return STRUCK;
  return __longlong_as_double(key >> 63 ? key & ~(1ull << 63) : ~key);
}

// Which blocks are looked at. An item is 32 blocks of a body in a rotation; rotations come in an
// order in which those that follow each other are not alike.
struct Walk {
  unsigned long long begin, end;  // items
  unsigned long long rotations, stride;  // the next: stride further on, modulo rotations
  unsigned bodies, greedy;  // greedy: only the best block of 32 and its best parts are looked at
  unsigned blocks[3], chunks;  // of a body in a rotation: blocks along each axis, items
};

struct Listed {
  long long pose;  // -1: none, or struck out
  double score;
  unsigned body, unused;
};

struct Band {
  unsigned long long* best;  // key of the best score
  unsigned long long* count;  // of the poses that there were to list,
  Listed* listed;
  unsigned long long most;  // of which there is room for these
  double width;
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

  // The least score of the band so far; for greedy ones the best score so far.
  __device__ double least_score() const {
    const double best = wide_score_of(*static_cast<volatile unsigned long long*>(band.best));
    return best - (greedy ? 0 : band.width);
  }

  // The most that shortfalls of a pose in the band sum up to, with what rounding may add: each is a
  // difference, and all are at least 0, so that an addition errs by at most UNIT × the sum. Of the
  // additions are count for a block, and twice as many for what is left of its parent's sum.
  __device__ float allowed() const {
    const double sum = (most - least_score()) * (1 + (4. * count + 8) * UNIT) * bounds.factor;
    return rounded_up(sum);
  }

  __device__ float bound_of_atom(const Pool& pool, unsigned kind, const float* at,
                                 const float* place) const {
    unsigned box[3];
    for (int axis = 0; axis < 3; ++axis) {
      const float last = float(pool.side[axis] - 1);
      const float low = at[axis] + place[axis] + float(pool.window[axis]);
      box[axis] = unsigned(fminf(fmaxf(low, 0.f), last));
    }
    return __ldg(pool.values + kind * boxes_of(pool) + index_of(pool, box[0], box[1], box[2]));
  }

  // The sum of the least shortfalls in a block, or inf where it is more than is allowed together
  // with what atoms that are not looked up yet fall short by in the block's parent.
  template <unsigned LEVEL>
  __device__ float shortfall(const Block& block, unsigned parent, float of_parent,
                             float allowed) const {
    const Pool& pool = bounds.pools[LEVEL];
    const unsigned lane = threadIdx.x % LANES;
    float at[3], sum = 0;
    for (int axis = 0; axis < 3; ++axis)
      at[axis] = float(origin[axis] + block.at[axis] * step[axis] - bounds.low);
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
  __device__ void score(const Block& shift, float allowed) const {
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
    const unsigned key = shortfall < UNDECIDED ? key_of(-shortfall) : 0;
    const unsigned highest = __reduce_max_sync(~0u, key);
    const unsigned best = __ballot_sync(~0u, key && key == highest);
    return best & (0 - best);
  }
};

__device__ __forceinline__ unsigned without_lowest(unsigned mask) { return mask & (mask - 1); }

// Looks into the blocks of the lanes in `mask`, four at a time: a lane takes one of eight parts.
// sum: of the least shortfalls in the block of this lane
template <unsigned LEVEL>
__device__ void descend(const Turned& turned, unsigned mask, const Block& mine, float sum) {
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
    const float of_parent = __shfl_sync(~0u, sum, parent), allowed = turned.allowed();
    __syncwarp();  // the sums of the level above are there, and those of this one no more read
    const float found = there ? turned.shortfall<LEVEL>(block, parent, of_parent, allowed)
                              : UNDECIDED;
    if constexpr (LEVEL + 1 < LEVELS)
      descend<LEVEL + 1>(turned, turned.chosen(found), block, found);
    else if (found < UNDECIDED) turned.score(block, allowed);
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
    turned.origin[axis] = placement.shift[axis];
    turned.step[axis] = space.step * field.per_unit[axis];
  }
  turned.most = order.spare[body];
  for (unsigned i = 0; i < count; ++i)
    turned.most += held[warp][i].top + fabsf(held[warp][i].top) / (1ll << 40);
  const unsigned number = chunk * LANES + lane, yz = walk.blocks[1] * walk.blocks[2];
  const Block block = {{number / yz * WIDEST, number / walk.blocks[2] % walk.blocks[1] * WIDEST,
                        number % walk.blocks[2] * WIDEST}};
  const bool there = number < walk.blocks[0] * yz;
  const float sum = there ? turned.shortfall<0>(block, 0, 0, turned.allowed()) : UNDECIDED;
  descend<1>(turned, turned.chosen(sum), block, sum);
}

// ---- thinning

struct Bodies {
  const double* moments;  // float64[bodies][bodies][9]: means of x yᵀ over the atoms of two bodies
  const double* targets;  // float64[bodies][3]: Å, where each centroid goes before the shift
  unsigned count, unused;
};

// The mean of the squared distances between the atoms of two placed bodies, as in ../thinning.py.
__device__ double squared_between(const Space& space, const Bodies& bodies, const Listed& one,
                                  const Listed& other) {
  const double* products = bodies.moments + 9 * size_t(one.body) * bodies.count;
  const double *across = products + 9 * other.body, *own = products + 9 * one.body;
  const double* others = bodies.moments + 9 * size_t(other.body) * (bodies.count + 1);
  const double spread = (own[0] + own[4] + own[8]) + (others[0] + others[4] + others[8]);
  Placement here, there;
  place(space, one.pose, here);
  place(space, other.pose, there);
  double overlap = 0, apart = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      double turned = 0;
      for (int k = 0; k < 3; ++k) turned += here.turn[3 * i + k] * across[3 * k + j];
      overlap += turned * there.turn[3 * i + j];
    }
    const double shift = (bodies.targets[3 * one.body + i] + here.shift[i]) -
                         (bodies.targets[3 * other.body + i] + there.shift[i]);
    apart += shift * shift;
  }
  return spread - 2 * overlap + apart;
}

__device__ __forceinline__ bool beats(const Listed& one, const Listed& other) {
  if (one.pose < 0 || other.pose < 0) return one.pose >= 0;
  if (one.score != other.score) return one.score > other.score;
  return one.body != other.body ? one.body < other.body : one.pose < other.pose;
}

// The best of a block's threads, in all of them.
__device__ Listed best_of_block(const Listed& mine) {
  __shared__ Listed held[THREADS];
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

// A round: takes the best of the poses that are left, strikes out those near to it and those below
// the band, and finds the best of the rest in each block. The first round only does the last.
// bests: [2][blocks], those of the last round and of this; taken: one for each round before.
extern "C" __global__ void __launch_bounds__(THREADS)
    take_best(Space space, Bodies bodies, Band band, double min_squared, unsigned round,
              Listed* bests, Listed* taken) {
  const unsigned long long count = *band.count;
  if (count > band.most) return;
  const Listed none = {-1, 0, 0};
  Listed best = none;
  if (round) {
    const Listed* last = bests + (round - 1) % 2 * gridDim.x;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS)
      if (beats(last[i], best)) best = last[i];
    best = best_of_block(best);
    if (blockIdx.x == 0 && threadIdx.x == 0) taken[round - 1] = best;
  }
  const double least = wide_score_of(*band.best) - band.width;
  Listed mine = none;
  for (unsigned long long i = blockIdx.x * THREADS + threadIdx.x; i < count;
       i += gridDim.x * THREADS) {
    Listed& next = band.listed[i];
    if (next.pose < 0) continue;
    const bool taken = next.pose == best.pose && next.body == best.body;
    if (next.score < least || taken ||
        (best.pose >= 0 && squared_between(space, bodies, best, next) < min_squared))
      next.pose = -1;
    else if (beats(next, mine)) mine = next;
  }
  mine = best_of_block(mine);
  if (threadIdx.x == 0) bests[round % 2 * gridDim.x + blockIdx.x] = mine;
}

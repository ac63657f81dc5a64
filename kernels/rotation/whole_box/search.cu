// The search of a box for all poses of a band: bounds of blocks of 8³, 4³, 2³ shifts and 1, then scores.
// Why no pose of the band is passed over, and the margins here: docs/dock.md.
//
// EULER, LINEAR, ENDS, PENALTY, TERMS, THREADS: as for ../search.cu. BOUNDED: atoms of a body that have
// bounds of their own.
#include "../ligands.cuh"
#include "maps.cuh"
#include "thinning.cuh"

constexpr unsigned LANES = 32, WARPS = THREADS / LANES, CHILDREN = 8, FAMILIES = LANES / CHILDREN;
constexpr unsigned LEVELS = 4, WIDEST = 8;  // shifts along the edge of the blocks of level 0
constexpr unsigned GROUP = 4;  // atoms whose bounds are added before the sum is looked at
constexpr unsigned KEPT = 8;  // groups after which the sum of a block is kept for its parts
constexpr unsigned ROOM = FAMILIES - 1 + LANES;  // of a queue: less than four families, and a step
constexpr float UNIT = 1.f / (1 << 24);
static_assert(BOUNDED % GROUP == 0 && GROUP == 4);

// ---- atoms of bodies in the order in which their bounds are added

struct Order {
  const int* begins;  // int32[bodies + 1]: of the atoms with bounds of their own
  const int* atoms;  // their numbers
  const int* kinds;
  double* most;  // float64[bodies]: what they score at most; before `add_tops`, the other atoms
  const unsigned* tops;  // uint32[mapped]: `Kinds`
  unsigned mapped, unused;
};

// One thread a body.
extern "C" __global__ void __launch_bounds__(THREADS) add_tops(Order order, unsigned bodies) {
  const unsigned body = blockIdx.x * THREADS + threadIdx.x;
  if (body >= bodies) return;
  double most = order.most[body];
  for (int i = order.begins[body]; i < order.begins[body + 1]; ++i) {
    const double top = score_of(order.tops[order.kinds[i]]);
    most += top + fabs(top) / (1ll << 40);
  }
  order.most[body] = most;
}

// ---- the search

// Which blocks are looked at. An item is a chunk, 32 blocks of a body in a rotation; rotations come
// in an order in which those that follow each other are not alike.
struct Walk {
  unsigned long long begin, end;  // items
  unsigned long long rotations, stride;  // the next: stride further on, modulo rotations
  unsigned bodies, greedy;  // greedy: of 32 blocks only the best four are looked into
  unsigned blocks[3], chunks;  // of a body in a rotation: blocks along each axis, items
};

struct Bounds {
  Pool pools[LEVELS];
  double low;  // that boxes begin before a block's lowest place
  double factor;  // by which least shortfalls may be above the true ones
};

// An atom with bounds, its place from the centroid in units of the spacing.
struct alignas(16) Atom {
  float place[3];
  unsigned kind;
};

// A block of shifts by its lowest, and the sum of its least shortfalls.
struct alignas(16) Block {
  unsigned at[3];
  float sum;
};

// Blocks whose parts are to be looked at.
struct Queue {
  Block blocks[ROOM];
  unsigned short sums[KEPT][ROOM];  // upper halves, not below the sums after each group
};

// The maps of a level, seen from a centroid; shares are of all windows along an axis.
struct Look {
  const unsigned short* values;
  unsigned size, ny, nz, surplus;
  float at[3], share[3], last[3];

  __device__ __forceinline__ float shortfall(const Atom& atom) const {
    unsigned window[3];
    for (int axis = 0; axis < 3; ++axis) {
      const float along = __saturatef(fmaf(atom.place[axis], share[axis], at[axis]));
      window[axis] = __float_as_uint(__fmaf_rz(along, last[axis], FLOOR));
    }
    const unsigned index = (window[0] * ny + window[1]) * nz;
    return from_half(__ldg(values + (index + (window[2] + (atom.kind * size - surplus)))));
  }
};

// A pose that its bounds do not rule out.
struct Candidate {
  unsigned long long pose;
  unsigned body;
};

// What a warp has in shared memory: a body in a rotation, and what waits.
struct Held {
  unsigned long long rotation;
  double origin[3];  // the lowest shift's place, in units of the spacing
  Atom atoms[BOUNDED];
  Queue queues[LEVELS - 1];
  Candidate candidates[2 * LANES];
};

__device__ __forceinline__ unsigned lane_of_thread() { return threadIdx.x % LANES; }

// How many lanes of the mask come before this one.
__device__ __forceinline__ unsigned rank_in(unsigned mask) {
  return __popc(mask & ((1u << lane_of_thread()) - 1));
}

// A warp's search: one body in a rotation after the other. The blocks that it is to look into wait
// in a queue for each level until their parts fill it, and so do the poses that it is to score.
struct Search {
  const Space& space;
  const Field& field;
  const Ligands& ligands;
  const Order& order;
  const Bounds& bounds;
  const Walk& walk;
  const Band& band;
  Held& held;
  unsigned candidates;
  unsigned sizes;  // of the queues, 8 bits each

  unsigned body, count;  // atoms with bounds
  unsigned chunk, chunks;  // the next, and the end
  float allowed;  // the most that the shortfalls of a pose in the band so far sum up to

  __device__ unsigned queued(unsigned level) const { return sizes >> 8 * level & 0xFF; }

  // The least score of the band so far; for greedy ones the best score so far.
  __device__ double least_score() const {
    const double best = wide_score_of(*static_cast<volatile unsigned long long*>(band.best));
    return best - (walk.greedy ? 0 : band.width);
  }

  // Rounding: no term of a sum is above the true one, and all are at least 0, so that an addition
  // errs by at most UNIT × the sum. There are count of them for a block, and twice as many for what
  // is left of its parent's sum.
  __device__ void update_allowed() {
    const double sum = order.most[body] - least_score();
    allowed = rounded_up(sum * (1 + (4. * count + 8) * UNIT) * bounds.factor);
  }

  // The maps of a level, with the centroid at a block's lowest shift.
  __device__ Look look_from(const Pool& pool, const Block& block) const {
    Look look = {pool.values, pool.size, pool.side[1], pool.side[2]};
    const unsigned surplus = __float_as_uint(FLOOR);  // modulo 2^32, all of this
    look.surplus = surplus * ((look.ny + 1) * look.nz + 1);
    for (int axis = 0; axis < 3; ++axis) {
      const double place = held.origin[axis] + block.at[axis] * (space.step * field.per_unit[axis]);
      look.at[axis] = float((place + pool.window[axis]) * pool.share[axis]);
      look.share[axis] = float(pool.share[axis]);
      look.last[axis] = float(pool.side[axis] - 1);
    }
    return look;
  }

  // The sum of the least shortfalls in a block, or inf where it is more than is allowed together
  // with what atoms that are not looked up yet fall short by in the block's parent.
  // block.sum: of the parent
  __device__ float shortfall(unsigned level, const Block& block, unsigned parent) const {
    const Look look = look_from(bounds.pools[level], block);
    const unsigned own = level + 1 < LEVELS ? queued(level) + lane_of_thread() : 0;
    float sum = 0;
    for (unsigned group = 0; group * GROUP < count; ++group) {
      const Atom* atoms = held.atoms + group * GROUP;
      // In pairs, so that the look-ups do not wait for each other.
      sum += (look.shortfall(atoms[0]) + look.shortfall(atoms[1])) +
             (look.shortfall(atoms[2]) + look.shortfall(atoms[3]));
      float left = 0;
      if (level > 0 && group < KEPT)
        left = block.sum - from_half(held.queues[level - 1].sums[group][parent]);
      if (sum + left > allowed) return UNDECIDED;
      if (level + 1 < LEVELS && group < KEPT) held.queues[level].sums[group][own] = half_above(sum);
    }
    return sum;
  }

  // Which lanes' blocks are looked into.
  __device__ unsigned chosen(float shortfall) const {
    const unsigned good = __ballot_sync(~0u, shortfall < UNDECIDED);
    if (!walk.greedy) return good;
    unsigned best = 0;
    for (unsigned taken = 0; taken < FAMILIES; ++taken) {
      const bool left = shortfall < UNDECIDED && !(best >> lane_of_thread() & 1);
      const unsigned key = left ? key_of(-shortfall) : 0, highest = __reduce_max_sync(~0u, key);
      const unsigned same = __ballot_sync(~0u, key && key == highest);
      best |= same & (0 - same);
    }
    return best;
  }

  // Makes a body in a rotation, and the chunks of it that are items, the next to be looked at;
  // false: others have the same poses.
  __device__ bool begin(unsigned long long turn) {
    const unsigned long long first = turn * walk.chunks;
    chunk = unsigned(max(walk.begin, first) - first);
    chunks = unsigned(min(walk.end - first, (unsigned long long)walk.chunks));
    body = unsigned(turn % walk.bodies);
    const unsigned long long rotation = turn / walk.bodies * walk.stride % walk.rotations;
    Placement placement;
    if (!place(space, rotation * space.sides[0] * space.sides[1] * space.sides[2], placement))
      return false;
    to_grid(field, ligands.starts + 3 * body, placement);
    const int begin = order.begins[body];
    count = unsigned(order.begins[body + 1] - begin);
    __syncwarp();  // nothing of the last one is read any more
    held.rotation = rotation;
    for (int axis = 0; axis < 3; ++axis) held.origin[axis] = placement.shift[axis] - bounds.low;
    for (unsigned i = lane_of_thread(); i < BOUNDED; i += LANES) {
      Atom& atom = held.atoms[i];
      if (i >= count) {  // fills a group, and its bound is the 0 behind the maps
        atom = {{STRUCK, STRUCK, STRUCK}, order.mapped};
        continue;
      }
      const double* at = ligands.places + 3ll * order.atoms[begin + i];
      for (int axis = 0; axis < 3; ++axis) {
        const double* row = placement.turn + 3 * axis;
        atom.place[axis] = float(row[0] * at[0] + row[1] * at[1] + row[2] * at[2]);
      }
      atom.kind = unsigned(order.kinds[begin + i]);
    }
    __syncwarp();
    return true;
  }

  // The level to look at next: the deepest for which there are blocks to fill the warp, and at the
  // end the others; LEVELS: none.
  __device__ unsigned next_level() const {
    for (unsigned level = LEVELS - 1; level > 0; --level)
      if (queued(level - 1) >= FAMILIES) return level;
    if (chunk < chunks) return 0;
    for (unsigned level = 1; level < LEVELS; ++level)
      if (queued(level - 1)) return level;
    return LEVELS;
  }

  // This lane's block of the next chunk; false: none.
  __device__ bool take_block(Block& block) {
    const unsigned number = chunk++ * LANES + lane_of_thread();
    const unsigned yz = walk.blocks[1] * walk.blocks[2];
    block = {{number / yz * WIDEST, number / walk.blocks[2] % walk.blocks[1] * WIDEST,
              number % walk.blocks[2] * WIDEST},
             0};
    return number < walk.blocks[0] * yz;
  }

  // One of eight parts of one of the last four blocks in a queue, with the sum of that; false: none.
  __device__ bool take_part(unsigned level, Block& block, unsigned& parent) {
    const unsigned family = lane_of_thread() / CHILDREN, part = lane_of_thread() % CHILDREN;
    const unsigned many = queued(level - 1), taken = min(many, FAMILIES);
    sizes -= taken << 8 * (level - 1);
    bool there = family < taken;
    parent = many - taken + (there ? family : 0);
    block = held.queues[level - 1].blocks[parent];
    for (int axis = 0; axis < 3; ++axis) {
      block.at[axis] += (part >> (2 - axis) & 1) * (WIDEST >> level);
      there = there && block.at[axis] < space.sides[axis];
    }
    return there;
  }

  __device__ void look_at(unsigned level) {
    if (level < 2) update_allowed();
    Block block;
    unsigned parent = 0;
    const bool there = level ? take_part(level, block, parent) : take_block(block);
    block.sum = there ? shortfall(level, block, parent) : UNDECIDED;
    const unsigned good = chosen(block.sum);
    if (level + 1 < LEVELS) queue_blocks(level, good, block);
    else queue_poses(good, block);
  }

  __device__ void queue_blocks(unsigned level, unsigned good, const Block& block) {
    Queue& queue = held.queues[level];
    const unsigned first = queued(level), to = first + rank_in(good), lane = lane_of_thread();
    for (unsigned group = 0; good && group < KEPT && group * GROUP < count; ++group) {
      const unsigned short sum = queue.sums[group][first + lane];
      __syncwarp();
      if (good >> lane & 1) queue.sums[group][to] = sum;
    }
    if (good >> lane & 1) queue.blocks[to] = block;
    sizes += __popc(good) << 8 * level;
    __syncwarp();
  }

  __device__ void queue_poses(unsigned good, const Block& shift) {
    unsigned long long pose = held.rotation;
    for (int axis = 0; axis < 3; ++axis) pose = pose * space.sides[axis] + shift.at[axis];
    if (good >> lane_of_thread() & 1) held.candidates[candidates + rank_in(good)] = {pose, body};
    candidates += __popc(good);
    __syncwarp();
  }

  // Scores the last candidates, at most 32, and lists those that are in the band so far.
  __device__ void score(unsigned many) {
    candidates -= many;
    const unsigned lane = lane_of_thread();
    if (lane < many) score(held.candidates[candidates + lane]);
    __syncwarp();
  }

  __device__ void score(const Candidate& one) const {
    const double exact = exact_score(space, field, ligands, one.body, one.pose);
    const unsigned long long key = wide_key_of(exact);
    if (key > *static_cast<volatile unsigned long long*>(band.best)) atomicMax(band.best, key);
    if (walk.greedy || exact < least_score()) return;
    const unsigned long long number = atomicAdd(band.count, 1ull);
    if (number < band.most) band.listed[number] = {(long long)one.pose, exact, one.body};
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, 14)
    search(Space space, Field field, Ligands ligands, Order order, Bounds bounds, Walk walk,
           Band band) {
  __shared__ Held held[WARPS];
  const unsigned warp = threadIdx.x / LANES;
  Search search = {space, field, ligands, order, bounds, walk, band, held[warp], 0, 0};
  const unsigned long long end = (walk.end + walk.chunks - 1) / walk.chunks;
  for (unsigned long long turn = walk.begin / walk.chunks + blockIdx.x * WARPS + warp; turn < end;
       turn += gridDim.x * WARPS) {
    if (!search.begin(turn)) continue;
    for (unsigned level; (level = search.next_level()) < LEVELS;) {
      search.look_at(level);
      if (search.candidates >= LANES) search.score(LANES);
    }
  }
  search.score(search.candidates);
}

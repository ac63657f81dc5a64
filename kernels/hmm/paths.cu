// The likeliest paths through the states, in parallel over samples and blocks of regions, and the
// logarithms of counts over means. COUNT is the type of a count.
//
// All scores are whole numbers, so maxima of sums are the same in any order. Each block becomes a
// matrix: the best score from every state before it to every state at its end (`multiply`). Their
// products give the scores at each start (`starts`), from there every state knows the one before it
// (`point`), these composed give the state at each end (`ends`), and that the path (`trace`).
// Emissions are made in the two passes that use them, and never stored.

#include "../numerics/log2_exp2.cuh"

typedef long long i64;
typedef unsigned short u16;

constexpr int STATES = 5, USUAL = 2, UNIT = 1024, FORBIDDEN = -(1 << 24);
constexpr double LEAST_MEAN = 0.5;
constexpr int BLOCK = 128;  // regions
constexpr int LANES = 128;  // threads that go over the blocks of a sample
constexpr double IMPOSSIBLE = -1e18, ROUND = 6755399441055744.0, PER_BIT = UNIT / LOG2E;

struct Move {
  int enter, stay, leave;
};

struct Input {
  const COUNT* counts;  // [regions, columns]
  const float* mean;  // [regions, means]
  const float* dispersion;
  const unsigned char* inside;
  const Move* moves;
  const double* folds;  // [2, samples, STATES]
  const double* log_folds;
  const double* noise;
  i64 regions, blocks;
  double worth, cap;
  int columns, means, samples;
};

// What a thread works on; `place` is where its block's things are.
struct Task {
  i64 place, begin, stop;
  int sample;
  bool exists;
};

__device__ __forceinline__ Task task_of(const Input& input) {
  const i64 place = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const i64 begin = place / input.samples * BLOCK;
  const i64 stop = begin + BLOCK < input.regions ? begin + BLOCK : input.regions;
  return {place, begin, stop, int(place % input.samples), begin < input.regions};
}

// The scores of cpu.py, operation by operation.
__device__ __forceinline__ void emit(const Input& input, i64 row, int sample,
                                     int (&emitted)[STATES]) {
  const i64 at = i64(input.inside[row] ? input.samples : 0) + sample;
  const double m = input.mean[row * input.means + sample];
  const double count = input.counts[row * input.columns + sample];
  const double d = double(input.dispersion[row]) * input.noise[sample] + 1 / (input.worth * m);
  const double rate = d * m, usual = log2_of(1 + rate), more = count + 1 / d;
  double bits[STATES], best = 0;
#pragma unroll
  for (int state = 0; state < STATES; ++state) {
    if (state == USUAL) continue;
    const double fold = input.folds[at * STATES + state];
    const double off = log2_of(1 + rate * fold) - usual;
    const double value = count * input.log_folds[at * STATES + state] - more * off;
    bits[state] = fold > 0 ? m > LEAST_MEAN ? value : 0 : IMPOSSIBLE;
    best = bits[state] > best ? bits[state] : best;
  }
  const double floor = best - input.cap, base = floor > 0 ? floor : 0;
#pragma unroll
  for (int state = 0; state < STATES; ++state) {
    if (state == USUAL) continue;
    const double kept = bits[state] > floor ? bits[state] : floor;
    const double nearest = ((kept - base) * PER_BIT + ROUND) - ROUND;
    emitted[state] = bits[state] > IMPOSSIBLE ? int(nearest) : FORBIDDEN;
  }
  emitted[USUAL] = int((((0 > floor ? 0 : floor) - base) * PER_BIT + ROUND) - ROUND);
}

// The greatest of scores and its state, the first in this order where several are as great.
struct Likeliest {
  int score, state;
  __device__ __forceinline__ void meet(int other, int its) {
    if (other > score) score = other, state = its;
  }
};

__device__ __forceinline__ Likeliest likeliest(int none, int one, int usual, int more, int two) {
  Likeliest found = {usual, USUAL};
  found.meet(one, 1);
  found.meet(more, 3);
  found.meet(none, 0);
  found.meet(two, 4);
  return found;
}

// Takes best scores to the next region; returns the state before each, three bits a state.
__device__ __forceinline__ unsigned advance(int (&best)[STATES], const Move& move,
                                            const int (&emitted)[STATES]) {
  int next[STATES];
  unsigned back = 0;
#pragma unroll
  for (int state = 0; state < STATES; ++state) {
    int from[STATES];
#pragma unroll
    for (int k = 0; k < STATES; ++k)
      from[k] = best[k] + (state == USUAL ? move.leave : state == k ? move.stay : move.enter);
    if (state == USUAL) from[USUAL] = best[USUAL];
    const Likeliest found = likeliest(from[0], from[1], from[2], from[3], from[4]);
    next[state] = found.score + emitted[state];
    back |= unsigned(found.state) << 3 * state;
  }
#pragma unroll
  for (int state = 0; state < STATES; ++state) best[state] = next[state];
  return back;
}

__device__ __forceinline__ void start_in(int (&best)[STATES], int start) {
#pragma unroll
  for (int state = 0; state < STATES; ++state) best[state] = state == start ? 0 : FORBIDDEN;
}

__device__ __forceinline__ void relate(int (&best)[STATES], int usual) {
#pragma unroll
  for (int state = 0; state < STATES; ++state) best[state] -= usual;
}

// products[from, to, place]
extern "C" __global__ void __launch_bounds__(128) multiply(Input input, int* products) {
  const Task task = task_of(input);
  if (!task.exists) return;
  int best[STATES][STATES], emitted[STATES];
#pragma unroll
  for (int from = 0; from < STATES; ++from) start_in(best[from], from);
  for (i64 row = task.begin; row < task.stop; ++row) {
    const Move move = input.moves[row];
    emit(input, row, task.sample, emitted);
#pragma unroll
    for (int from = 0; from < STATES; ++from) advance(best[from], move, emitted);
  }
  const i64 all = input.blocks * input.samples;
#pragma unroll
  for (int i = 0; i < STATES * STATES; ++i)
    products[i * all + task.place] = best[i / STATES][i % STATES];
}

// best = best × product, related to its usual state.
__device__ __forceinline__ void pass(int (&best)[STATES], const int* product, i64 stride) {
  int next[STATES];
#pragma unroll
  for (int to = 0; to < STATES; ++to) {
    next[to] = best[0] + product[to * stride];
#pragma unroll
    for (int from = 1; from < STATES; ++from) {
      const int other = best[from] + product[(from * STATES + to) * stride];
      next[to] = other > next[to] ? other : next[to];
    }
  }
#pragma unroll
  for (int to = 0; to < STATES; ++to) best[to] = next[to];
}

// starts[state, place]: scores before each block. A sample has a thread block, a thread consecutive
// blocks of regions.
extern "C" __global__ void __launch_bounds__(LANES)
    starts(i64 blocks, int samples, const int* products, int* starts) {
  __shared__ int shares[STATES * STATES][LANES], begins[STATES][LANES];
  const int lane = threadIdx.x;
  const i64 all = blocks * samples, share = (blocks + LANES - 1) / LANES, first = lane * share,
            stop = first + share < blocks ? first + share : blocks;
  int rows[STATES][STATES], best[STATES];
#pragma unroll
  for (int from = 0; from < STATES; ++from) start_in(rows[from], from);
  for (i64 block = first; block < stop; ++block) {
#pragma unroll
    for (int from = 0; from < STATES; ++from)
      pass(rows[from], products + block * samples + blockIdx.x, all);
    const int usual = rows[USUAL][USUAL];
#pragma unroll
    for (int from = 0; from < STATES; ++from) relate(rows[from], usual);
  }
#pragma unroll
  for (int i = 0; i < STATES * STATES; ++i) shares[i][lane] = rows[i / STATES][i % STATES];
  __syncthreads();
  if (lane == 0) {
    start_in(best, USUAL);
    for (int other = 0; other < LANES; ++other) {
#pragma unroll
      for (int state = 0; state < STATES; ++state) begins[state][other] = best[state];
      pass(best, &shares[0][other], LANES);
      relate(best, best[USUAL]);
    }
  }
  __syncthreads();
#pragma unroll
  for (int state = 0; state < STATES; ++state) best[state] = begins[state][lane];
  for (i64 block = first; block < stop; ++block) {
    const i64 place = block * samples + blockIdx.x;
#pragma unroll
    for (int state = 0; state < STATES; ++state) starts[state * all + place] = best[state];
    pass(best, products + place, all);
    relate(best, best[USUAL]);
  }
}

constexpr unsigned IDENTITY = 0 | 1 << 3 | 2 << 6 | 3 << 9 | 4 << 12;

__device__ __forceinline__ unsigned before(unsigned map, unsigned state) {
  return map >> 3 * state & 7;
}

// The state that `earlier` leads to from the one that `later` does.
__device__ __forceinline__ unsigned composed(unsigned earlier, unsigned later) {
  unsigned map = 0;
#pragma unroll
  for (unsigned state = 0; state < STATES; ++state)
    map |= before(earlier, before(later, state)) << 3 * state;
  return map;
}

// back[row, sample], and maps[place]: of the states at a block's end to those before it. At the end
// of all regions, `last` has each sample's likeliest state.
extern "C" __global__ void __launch_bounds__(128)
    point(Input input, const int* starts, u16* back, u16* maps, unsigned char* last) {
  const Task task = task_of(input);
  if (!task.exists) return;
  const i64 all = input.blocks * input.samples;
  int best[STATES], emitted[STATES];
#pragma unroll
  for (int state = 0; state < STATES; ++state) best[state] = starts[state * all + task.place];
  unsigned map = IDENTITY;
  for (i64 row = task.begin; row < task.stop; ++row) {
    emit(input, row, task.sample, emitted);
    const unsigned froms = advance(best, input.moves[row], emitted);
    back[row * input.samples + task.sample] = u16(froms);
    map = composed(map, froms);
  }
  maps[task.place] = u16(map);
  if (task.stop == input.regions)
    last[task.sample] = likeliest(best[0], best[1], best[2], best[3], best[4]).state;
}

// ends[place]: the path's state at each block's end.
extern "C" __global__ void __launch_bounds__(LANES)
    ends(i64 blocks, int samples, const u16* maps, const unsigned char* last, unsigned char* ends) {
  __shared__ unsigned shares[LANES], found[LANES];
  const int lane = threadIdx.x;
  const i64 share = (blocks + LANES - 1) / LANES, first = lane * share,
            stop = first + share < blocks ? first + share : blocks;
  unsigned map = IDENTITY;
  for (i64 block = first; block < stop; ++block)
    map = composed(map, maps[block * samples + blockIdx.x]);
  shares[lane] = map;
  __syncthreads();
  if (lane == 0) {
    unsigned state = last[blockIdx.x];
    for (int other = LANES - 1; other >= 0; --other) {
      found[other] = state;
      state = before(shares[other], state);
    }
  }
  __syncthreads();
  unsigned state = found[lane];
  for (i64 block = stop - 1; block >= first; --block) {
    ends[block * samples + blockIdx.x] = state;
    state = before(maps[block * samples + blockIdx.x], state);
  }
}

extern "C" __global__ void __launch_bounds__(128)
    trace(Input input, const u16* back, const unsigned char* ends, signed char* path) {
  const Task task = task_of(input);
  if (!task.exists) return;
  unsigned state = ends[task.place];
  for (i64 row = task.stop - 1; row >= task.begin; --row) {
    const i64 at = row * input.samples + task.sample;
    path[at] = state;
    state = before(back[at], state);
  }
}

// ratios[row, sample] = log2((count + 0.5) / (mean + 0.5)), 0 where no reads are expected
extern "C" __global__ void __launch_bounds__(128)
    take_ratios(const COUNT* counts, const float* mean, i64 regions, int columns, int means,
                int samples, float* ratios) {
  const i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x, row = at / samples;
  if (row >= regions) return;
  const i64 sample = at % samples;
  const double count = counts[row * columns + sample], usual = mean[row * means + sample];
  ratios[at] = usual > LEAST_MEAN ? float(log2_of((count + 0.5) / (usual + 0.5))) : 0;
}

// The pattern search of pattern.py: a block climbs with one placement, a thread has one trial.
//
// Of the field: LINEAR, ENDS, PENALTY, TERMS (../search.cu). TRIALS … RATE: constants of pattern.py.
#include "../ligands.cuh"

constexpr unsigned SHARE = TRIALS / GROUPS;  // trials of a group
static_assert(TRIALS >= 36 && TRIALS % GROUPS == 0);

// Bodies, without `starts`, `deltas` and `doubt`, and placements of them.
struct Start {
  Ligands ligands;
  const long long* bodies;  // int64[placements]
  const double* matrices;  // float64[placements][9]
  const double* centroids;  // float64[placements][3], Å
  const double* origin;  // float64[3] of the field
  const double* directions;  // float64[TABLES][TRIALS][6]
};

// A batch of trials, and what they start from.
struct Batch {
  Placement from;
  double metric[2][36], change[36];  // of even and of odd batches
  double scores[TRIALS];
  unsigned winners[GROUPS];
};

__device__ __forceinline__ double identity(unsigned i) { return i % 7 == 0; }

__device__ double score_at(const Field& field, const Ligands& ligands, long long body,
                           const double* origin, Placement placement) {
  const double none[3] = {};
  for (int axis = 0; axis < 3; ++axis) placement.shift[axis] -= origin[axis];
  to_grid(field, none, placement);
  double total = 0;
  for (long long atom = ligands.offsets[body]; atom < ligands.offsets[body + 1]; ++atom)
    total += exact_atom(field, ligands, placement, atom);
  return total;
}

// Where a step in a direction leads to, as `_moved` of reference.py has it.
__device__ Placement moved(const Placement& from, const double* metric, const double* direction,
                           double step) {
  double move[6];
  for (int i = 0; i < 6; ++i) {
    double along = metric[6 * i] * direction[0];
    for (int j = 1; j < 6; ++j) along += metric[6 * i + j] * direction[j];
    move[i] = step * along;
  }
  const double half = 0.5 / ARM, a = move[3] * half, b = move[4] * half, c = move[5] * half;
  const double scale = 2 / (1 + ((a * a + b * b) + c * c));
  const double turn[9] = {
      1 - scale * (b * b + c * c), scale * (a * b - c),         scale * (a * c + b),
      scale * (a * b + c),         1 - scale * (a * a + c * c), scale * (b * c - a),
      scale * (a * c - b),         scale * (b * c + a),         1 - scale * (a * a + b * b)};
  Placement to;
  for (int i = 0; i < 3; ++i) {
    const double x = turn[3 * i], y = turn[3 * i + 1], z = turn[3 * i + 2];
    for (int j = 0; j < 3; ++j)
      to.turn[3 * i + j] = (x * from.turn[j] + y * from.turn[3 + j]) + z * from.turn[6 + j];
    to.shift[i] = from.shift[i] + move[i];
  }
  return to;
}

// The best trial of a group, the first of equals.
__device__ unsigned winner_of(const double* scores, unsigned group) {
  unsigned winner = SHARE * group;
  for (unsigned i = winner + 1; i < SHARE * (group + 1); ++i)
    if (scores[i] > scores[winner]) winner = i;
  return winner;
}

__device__ unsigned best_of(const Batch& batch) {
  unsigned best = batch.winners[0];
  for (unsigned group = 1; group < GROUPS; ++group)
    if (batch.scores[batch.winners[group]] > batch.scores[best]) best = batch.winners[group];
  return best;
}

// How the winners change the metric, and the metric after that: `_stretched` of reference.py.
__device__ double change_of(const Batch& batch, const double* table, unsigned element) {
  const unsigned i = element / 6, j = element % 6;
  double total = 0;
  for (unsigned group = 0; group < GROUPS; ++group) {
    const double* direction = table + 6 * batch.winners[group];
    total += direction[i] * direction[j];
  }
  return RATE * (total * (6. / GROUPS) - identity(element));
}

__device__ double stretched(const double* metric, const double* change, unsigned element) {
  const unsigned i = element / 6, j = element % 6;
  double total = metric[6 * i] * change[j];
  for (int k = 1; k < 6; ++k) total += metric[6 * i + k] * change[6 * k + j];
  return metric[element] + total;
}

// ends: float64[placements][13], scores, matrices and places of the centroids.
extern "C" __global__ void __launch_bounds__(TRIALS) climb(Field field, Start start, double* ends) {
  __shared__ Batch batch;
  const Ligands& ligands = start.ligands;
  const double* origin = start.origin;
  const unsigned me = threadIdx.x;
  const long long body = start.bodies[blockIdx.x];
  if (me < 9) batch.from.turn[me] = start.matrices[9 * size_t(blockIdx.x) + me];
  if (me < 3) batch.from.shift[me] = start.centroids[3 * size_t(blockIdx.x) + me];
  if (me < 36) batch.metric[0][me] = identity(me);
  __syncthreads();
  double score = score_at(field, ligands, body, origin, batch.from);
  double step = FIRST, before = STRUCK;
  for (unsigned number = 0; number < MOST_BATCHES; ++number) {
    double* metric = batch.metric[number % 2];
    if (step < FINEST) {
      if (score - before < GAIN) break;
      step = AGAIN;
      before = score;
      if (me < 36) metric[me] = identity(me);
      __syncthreads();
    }
    const double* table = start.directions + number % TABLES * TRIALS * 6;
    const Placement to = moved(batch.from, metric, table + 6 * me, step);
    batch.scores[me] = score_at(field, ligands, body, origin, to);
    __syncthreads();
    if (me < GROUPS) batch.winners[me] = winner_of(batch.scores, me);
    __syncthreads();
    const unsigned best = best_of(batch);
    const double gain = batch.scores[best] - score;
    if (gain > 0 && me == best) batch.from = to;
    if (me < 36) batch.change[me] = change_of(batch, table, me);
    score = gain > 0 ? batch.scores[best] : score;
    step = gain > LEAST ? fmin(GROWTH * step, FIRST) : SHRINKAGE * step;
    __syncthreads();
    if (me < 36) batch.metric[(number + 1) % 2][me] = stretched(metric, batch.change, me);
    __syncthreads();
  }
  double* end = ends + 13 * size_t(blockIdx.x);
  if (me == 0) end[0] = score;
  if (me < 9) end[1 + me] = batch.from.turn[me];
  if (me < 3) end[10 + me] = batch.from.shift[me];
}

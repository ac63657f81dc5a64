// CUDA kernels as C++: one thread of the machine runs a block's threads as fibers, in random order.
//
// A fiber runs until it meets the rest of its warp (`__ballot_sync` and its like) or of its block
// (`__syncthreads`), ends, or is interrupted at an atomic operation; then another of the block goes on. In half of the launches
// that is any other, in the rest the block goes forward in waves: every atomic operation interrupts, and
// no fiber goes on before all have had their turn. So assumptions about the order of lanes and warps
// show, and so do warps that part: all lanes must come to the same line.
// Blocks run one after the other, in random order, and shared memory holds garbage at first.
//
// What cannot show: that a barrier or a fence is missing between plain accesses, and speed.

#pragma once

#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include <cfenv>
#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>

#ifndef EMULATED_SECONDS
#define EMULATED_SECONDS 30  // of the processor, that a launch may take
#endif

#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("emulated_shared")))  // `emulated.py`: if not extern

struct alignas(8) int2 { int x, y; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// Where the arrays in shared memory lie; null where a source has none.
extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __start_emulated_shared[];
extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __stop_emulated_shared[];

namespace {

struct Index3 { unsigned x = 0, y = 0, z = 0; };
Index3 threadIdx, blockIdx, blockDim{1, 1, 1}, gridDim{1, 1, 1};

namespace emulator {

constexpr unsigned LANES = 32, MOST_THREADS = 1024;
constexpr size_t STACK = 128 << 10, MOST_SHARED = 228 << 10;
constexpr int SECONDS = EMULATED_SECONDS;

enum class Meeting { sync, ballot, any, shuffle, add, max, block };
constexpr const char* NAMES[] = {"__syncwarp", "__ballot_sync", "__any_sync", "__shfl_sync",
                                 "__reduce_add_sync", "__reduce_max_sync", "__syncthreads"};

struct Fiber {
  enum { ready, waiting, ended } state;
  bool started;
  jmp_buf place;
  ucontext_t context;
  // What it brings to a meeting of its warp, and takes from it.
  Meeting meeting;
  int line;
  unsigned source;
  unsigned long long value;
};

struct Warp { unsigned waiting, ended; };

Fiber fibers[MOST_THREADS];
unsigned char* stacks;  // of all fibers, one after the other
unsigned char* dynamic_shared;  // whose size the launch says
unsigned dynamic_bytes;
Warp warps[MOST_THREADS / LANES];
unsigned ready[MOST_THREADS], n_ready, n_wave;  // first those that are left of the wave
unsigned warps_at_barrier;
bool waves;
jmp_buf scheduler;
sigjmp_buf launching;
pthread_t launcher;
struct sigaction outer[NSIG];
const char* kernel_name;
void (*body)();
unsigned long long random_state;
char message[512];

unsigned random_below(unsigned n) {
  random_state += 0x9E3779B97F4A7C15ull;
  unsigned long long x = random_state;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return unsigned(((x ^ (x >> 31)) >> 32) * n >> 32);
}

[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...) {
  const int used = snprintf(message, sizeof message, "%s, block %u, thread %u: ", kernel_name,
                            blockIdx.x, threadIdx.x);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message + used, sizeof message - used, format, arguments);
  va_end(arguments);
  siglongjmp(launching, 1);
}

void fiber_main() {
  for (;;) {
    Fiber& self = fibers[threadIdx.x];
    body();
    self.state = Fiber::ended;
    if (!_setjmp(self.place)) _longjmp(scheduler, 1);
  }
}

__attribute__((noinline)) void to_scheduler(Fiber& self) {
  if (!_setjmp(self.place)) _longjmp(scheduler, 1);
}

__attribute__((noinline)) void resume(unsigned thread) {
  Fiber& fiber = fibers[thread];
  threadIdx.x = thread;
  if (_setjmp(scheduler)) return;
  if (fiber.started) _longjmp(fiber.place, 1);
  fiber.started = true;
  setcontext(&fiber.context);
}

void make_fiber(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = stacks + (&fiber - fibers) * STACK;
  fiber.context.uc_stack.ss_size = STACK;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, fiber_main, 0);
}

void interrupt() {
  if (waves || random_below(2)) to_scheduler(fibers[threadIdx.x]);
}

unsigned long long meet(Meeting meeting, unsigned mask, unsigned long long value, unsigned source,
                        int line) {
  if (mask != ~0u) fail("%s in line %d: only full masks are emulated", NAMES[int(meeting)], line);
  Fiber& self = fibers[threadIdx.x];
  self.meeting = meeting;
  self.line = line;
  self.value = value;
  self.source = source;
  self.state = Fiber::waiting;
  to_scheduler(self);
  return self.value;
}

void release(unsigned warp) {
  for (unsigned lane = 0; lane < LANES; ++lane) {
    fibers[warp * LANES + lane].state = Fiber::ready;
    ready[n_ready++] = warp * LANES + lane;
  }
  warps[warp].waiting = 0;
}

// All warps of the block wait at `__syncthreads`.
void open_barrier() {
  warps_at_barrier = 0;
  for (unsigned thread = 0; thread < blockDim.x; thread += LANES) {
    if (fibers[thread].line != fibers[0].line)
      fail("thread %u is at __syncthreads in line %d, thread 0 in line %d", thread,
           fibers[thread].line, fibers[0].line);
    release(thread / LANES);
  }
}

// All lanes of the warp are there: gives each its result and lets it go on.
void hold_meeting(unsigned warp) {
  const unsigned first = warp * LANES;
  const Fiber& one = fibers[first];
  unsigned long long brought[LANES] = {}, sum = 0, largest = 0, ballot = 0;
  for (unsigned lane = 0; lane < LANES; ++lane) {
    const Fiber& fiber = fibers[first + lane];
    if (fiber.meeting != one.meeting || fiber.line != one.line)
      fail("lane %u is at %s in line %d, lane 0 at %s in line %d", lane,
           NAMES[int(fiber.meeting)], fiber.line, NAMES[int(one.meeting)], one.line);
    brought[lane] = fiber.value;
    sum += fiber.value;
    largest = fiber.value > largest ? fiber.value : largest;
    ballot |= (unsigned long long)(fiber.value != 0) << lane;
  }
  for (unsigned lane = 0; lane < LANES; ++lane) {
    Fiber& fiber = fibers[first + lane];
    switch (one.meeting) {
      case Meeting::sync: break;
      case Meeting::ballot: fiber.value = ballot; break;
      case Meeting::any: fiber.value = ballot != 0; break;
      case Meeting::shuffle: fiber.value = brought[fiber.source % LANES]; break;
      case Meeting::add: fiber.value = sum; break;
      case Meeting::max: fiber.value = largest; break;
      case Meeting::block: break;
    }
  }
  if (one.meeting != Meeting::block) release(warp);
  else if (++warps_at_barrier == blockDim.x / LANES) open_barrier();
}

void run_block() {
  for (unsigned char* byte = __start_emulated_shared; byte < __stop_emulated_shared; ++byte)
    *byte = random_below(256);
  for (unsigned i = 0; i < dynamic_bytes; ++i) dynamic_shared[i] = random_below(256);
  memset(warps, 0, sizeof warps);
  n_ready = blockDim.x;
  for (unsigned thread = 0; thread < blockDim.x; ++thread) {
    Fiber& fiber = fibers[thread];
    if (!fiber.started) make_fiber(fiber);
    fiber.state = Fiber::ready;
    ready[thread] = thread;
  }
  n_wave = warps_at_barrier = 0;
  while (n_ready) {
    if (!waves || !n_wave) n_wave = n_ready;
    const unsigned at = random_below(n_wave), thread = ready[at];
    const Fiber& fiber = fibers[thread];
    Warp& warp = warps[thread / LANES];
    resume(thread);
    ready[at] = ready[--n_wave];
    ready[n_wave] = thread;
    if (fiber.state == Fiber::ready) continue;
    ready[n_wave] = ready[--n_ready];
    (fiber.state == Fiber::ended ? warp.ended : warp.waiting)++;
    if (warp.ended && warp.waiting) {
      for (unsigned other = thread / LANES * LANES;; ++other)
        if (fibers[other].state == Fiber::waiting)
          fail("a lane has ended, lane %u waits at %s in line %d", other % LANES,
               NAMES[int(fibers[other].meeting)], fibers[other].line);
    }
    if (warp.waiting == LANES) hold_meeting(thread / LANES);
  }
  if (warps_at_barrier) fail("%u warps wait at __syncthreads, the others have ended", warps_at_barrier);
}

void on_signal(int number, siginfo_t* info, void*) {
  if (!pthread_equal(pthread_self(), launcher)) {
    if (number == SIGVTALRM) pthread_kill(launcher, number);
    else sigaction(number, &outer[number], nullptr);  // somebody else's; comes again
    return;
  }
  if (number == SIGVTALRM) fail("does not end: %d seconds", SECONDS);
  if (number == SIGILL) fail("undefined behaviour (a shift, an overflow, an alignment)");
  fail("touches memory outside of its arrays at %p", info->si_addr);
}

// While it lives, faults and the alarm end the launch and not the process.
struct Watch {
  static constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGVTALRM};
  stack_t outer_stack;
  itimerval outer_timer;

  Watch() {
    static unsigned char stack[64 << 10];
    stack_t own = {};
    own.ss_sp = stack;
    own.ss_size = sizeof stack;
    sigaltstack(&own, &outer_stack);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int number : SIGNALS) sigaction(number, &action, &outer[number]);
    const itimerval timer = {{0, 0}, {SECONDS, 0}};
    setitimer(ITIMER_VIRTUAL, &timer, &outer_timer);
  }
  ~Watch() {
    setitimer(ITIMER_VIRTUAL, &outer_timer, nullptr);
    for (int number : SIGNALS) sigaction(number, &outer[number], nullptr);
    sigaltstack(&outer_stack, nullptr);
    for (Fiber& fiber : fibers) fiber.started = false;  // the stacks are the next launch's
  }
};

__attribute__((noinline)) bool run_grid() {
  if (sigsetjmp(launching, 1)) return false;
  // Blocks in the order of a random walk through the grid that takes every one once.
  unsigned step = 1 + random_below(gridDim.x);
  while (std::gcd(step, gridDim.x) != 1) ++step;
  blockIdx.x = random_below(gridDim.x);
  for (unsigned done = 0; done < gridDim.x; ++done) {
    blockIdx.x = (blockIdx.x + (unsigned long long)step) % gridDim.x;
    run_block();
  }
  return true;
}

struct Argument {
  const void* bytes;
  unsigned size;
  unsigned is_pointer;
};

const Argument* given;

template <class... A, size_t... I>
void call(void (*kernel)(A...), std::index_sequence<I...>) {
  kernel(*static_cast<const A*>(given[I].bytes)...);
}

template <class... A>
void call(void (*kernel)(A...)) {
  call(kernel, std::index_sequence_for<A...>());
}

template <class... A>
bool fits(void (*)(A...), const Argument* arguments, unsigned count) {
  const unsigned sizes[] = {sizeof(A)...};
  const bool pointers[] = {std::is_pointer_v<A>...};
  if (count != sizeof...(A)) {
    snprintf(message, sizeof message, "%s: takes %zu arguments, got %u", kernel_name, sizeof...(A),
             count);
    return false;
  }
  for (unsigned i = 0; i < count; ++i) {
    if (arguments[i].size == sizes[i] && bool(arguments[i].is_pointer) == pointers[i]) continue;
    snprintf(message, sizeof message, "%s: argument %u is %u bytes%s, got %u%s", kernel_name, i,
             sizes[i], pointers[i] ? " (a pointer)" : "", arguments[i].size,
             arguments[i].is_pointer ? " (a pointer)" : "");
    return false;
  }
  return true;
}

// Memory for the stacks of fibers, each with a page at its end that must not be touched; null where
// there is none. A process has it once for all compiled variants, because its mappings are limited
// in number, and for all launches, because a stack that is made again costs more than most fibers do.
unsigned char* make_stacks() {
  void* memory = mmap(nullptr, MOST_THREADS * STACK, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  unsigned char* made = static_cast<unsigned char*>(memory);
  for (unsigned thread = 0; thread < MOST_THREADS; ++thread)
    if (mprotect(made + thread * STACK, 4096, PROT_NONE)) return nullptr;
  return made;
}

// Shared memory that ends at a page that must not be touched; null where there is none.
unsigned char* make_shared(unsigned bytes) {
  static unsigned char* const memory = static_cast<unsigned char*>(mmap(
      nullptr, MOST_SHARED + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED || mprotect(memory + MOST_SHARED, 4096, PROT_NONE)) return nullptr;
  return bytes <= MOST_SHARED ? memory + MOST_SHARED - bytes : nullptr;
}

// Null, or what went wrong.
template <auto KERNEL>
const char* launch(const char* name, unsigned grid, unsigned block, unsigned shared,
                   const Argument* arguments, unsigned count, unsigned long long seed,
                   unsigned char* own_stacks) {
  kernel_name = name;
  dynamic_bytes = shared;
  if (shared && !(dynamic_shared = make_shared(shared))) return "no such shared memory";
  stacks = own_stacks;
  if (!fits(KERNEL, arguments, count)) return message;
  if (!grid || !block || block > MOST_THREADS || block % LANES) {
    snprintf(message, sizeof message, "%s: %u blocks of %u threads", name, grid, block);
    return message;
  }
  random_state = seed;
  waves = random_below(2);
  gridDim.x = grid;
  blockDim.x = block;
  given = arguments;
  body = [] { call(KERNEL); };
  launcher = pthread_self();
  const Watch watch;
  return run_grid() ? nullptr : message;
}

template <class T>
using As = std::common_type_t<T>;  // no deduction from this parameter

}  // namespace emulator

extern "C" unsigned char* emulated_stacks() { return emulator::make_stacks(); }

#define EMULATED_KERNEL(name)                                                                  \
  extern "C" const char* launch_##name(unsigned grid, unsigned block, unsigned shared,         \
                                       const emulator::Argument* arguments, unsigned count,    \
                                       unsigned long long seed, unsigned char* stacks) {       \
    return emulator::launch<&name>(#name, grid, block, shared, arguments, count, seed, stacks); \
  }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}
// Each of four digits of `which` says which of the eight bytes goes there.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned which) {
  const unsigned long long bytes = ((unsigned long long)high << 32) | low;
  unsigned chosen = 0;
  for (int i = 0; i < 4; ++i)
    chosen |= unsigned(bytes >> (which >> 4 * i & 7) * 8 & 0xFF) << 8 * i;
  return chosen;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned((((unsigned long long)high << 32) | low) >> (shift & 31));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned((((unsigned long long)high << 32) | low) << (shift & 31) >> 32);
}
inline long long __double_as_longlong(double x) {
  long long bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline double __longlong_as_double(long long bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
template <class T> T __ldg(const T* place) { return *place; }
template <class To, class From> To emulated_bits(From value) {
  To bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline int __float_as_int(float x) { return emulated_bits<int>(x); }
inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
inline float __fmaf_rz(float x, float y, float z) {
  const int mode = fegetround();
  fesetround(FE_TOWARDZERO);
  const volatile float sum = fmaf(x, y, z);
  fesetround(mode);
  return sum;
}
inline float __int_as_float(int x) { return emulated_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }

template <class A, class B> std::common_type_t<A, B> min(A a, B b) {
  const std::common_type_t<A, B> x = a, y = b;
  return x < y ? x : y;
}
template <class A, class B> std::common_type_t<A, B> max(A a, B b) {
  const std::common_type_t<A, B> x = a, y = b;
  return x > y ? x : y;
}

inline void __threadfence() { emulator::interrupt(); }

#define EMULATED_ATOMIC(name, ...)                                             \
  template <class T> T name(T* place, emulator::As<T> value) {                 \
    emulator::interrupt();                                                     \
    const T before = *static_cast<volatile T*>(place);                         \
    *static_cast<volatile T*>(place) = __VA_ARGS__;                            \
    emulator::interrupt();                                                     \
    return before;                                                             \
  }
EMULATED_ATOMIC(atomicAdd, before + value)
EMULATED_ATOMIC(atomicOr, before | value)
EMULATED_ATOMIC(atomicExch, value)
EMULATED_ATOMIC(atomicMin, value < before ? value : before)
EMULATED_ATOMIC(atomicMax, value > before ? value : before)
template <class T> T atomicCAS(T* place, emulator::As<T> expected, emulator::As<T> value) {
  emulator::interrupt();
  const T before = *static_cast<volatile T*>(place);
  if (before == expected) *static_cast<volatile T*>(place) = value;
  emulator::interrupt();
  return before;
}

inline void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE()) {
  emulator::meet(emulator::Meeting::sync, mask, 0, 0, line);
}
inline void __syncthreads(int line = __builtin_LINE()) {
  emulator::meet(emulator::Meeting::block, ~0u, 0, 0, line);
}
inline unsigned __ballot_sync(unsigned mask, int here, int line = __builtin_LINE()) {
  return unsigned(emulator::meet(emulator::Meeting::ballot, mask, here != 0, 0, line));
}
inline int __any_sync(unsigned mask, int here, int line = __builtin_LINE()) {
  return int(emulator::meet(emulator::Meeting::any, mask, here != 0, 0, line));
}
template <class T> T emulated_shuffle(unsigned mask, T value, unsigned source, int line) {
  static_assert(sizeof(T) <= sizeof(unsigned long long));
  unsigned long long bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = emulator::meet(emulator::Meeting::shuffle, mask, bits, source, line);
  memcpy(&value, &bits, sizeof value);
  return value;
}
// Of the `width` lanes, a power of two, that the caller is one of.
template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32,
                                 int line = __builtin_LINE()) {
  const unsigned lane = threadIdx.x % 32, within = width - 1;
  return emulated_shuffle(mask, value, (lane & ~within) | (source & within), line);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int step, int width = 32,
                                     int line = __builtin_LINE()) {
  const unsigned lane = threadIdx.x % 32, within = width - 1, source = lane ^ step;
  return emulated_shuffle(mask, value, source <= (lane | within) ? source : lane, line);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, int line = __builtin_LINE()) {
  return unsigned(emulator::meet(emulator::Meeting::max, mask, value, 0, line));
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, int line = __builtin_LINE()) {
  return unsigned(emulator::meet(emulator::Meeting::add, mask, value, 0, line));
}

}  // namespace

// Letters and sets into bit planes, and how long the patterns' clean runs are.

#include "planes.cuh"

// A letter's low five bits pick its bit in each of these: does it stand for the base?
__device__ constexpr u32 bits_of(const char* letters) {
  u32 bits = 0;
  for (; *letters; ++letters) bits |= 1u << (*letters & 31);
  return bits;
}
constexpr u32 IS_A = bits_of("ARWMDHVN"), IS_C = bits_of("CYSMBHVN"), IS_G = bits_of("GRSKBDVN"),
              IS_T = bits_of("TUYWKBDHN");

// letters[n] -> planes[words], 32 letters a thread; the lowest illegal position ends as ~*illegal (0: none).
extern "C" __global__ void pack(const unsigned char* __restrict__ letters, u32 n, u32 words,
                                uint4* __restrict__ planes, u32* illegal) {
  const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
  if (word >= words) return;
  uint4 out = make_uint4(ALL, ALL, ALL, ALL);
  const u32 begin = word * 32;
  if (begin < n) {
    uint4 halves[2];
    unsigned char* letter = reinterpret_cast<unsigned char*>(halves);
    if (begin + 32 <= n) {
      const uint4* source = reinterpret_cast<const uint4*>(letters + begin);
      halves[0] = source[0];
      halves[1] = source[1];
    } else {
#pragma unroll
      for (int i = 0; i < 32; ++i) letter[i] = begin + i < n ? letters[begin + i] : 'N';
    }
    u32 a = 0, c = 0, g = 0, t = 0, other = 0;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const u32 which = letter[i] & 31;
      a |= ((IS_A >> which) & 1) << i;
      c |= ((IS_C >> which) & 1) << i;
      g |= ((IS_G >> which) & 1) << i;
      t |= ((IS_T >> which) & 1) << i;
      other |= u32((letter[i] & 0xC0) != 0x40) << i;
    }
    other |= ~(a | c | g | t);
    if (other) atomicMax(illegal, ~(begin + __ffs(other) - 1));
    out = make_uint4(a, c, g, t);
  }
  planes[word] = out;
}

// From an address in page-locked memory of the host, which a kernel can read, to the device.
extern "C" __global__ void fetch(u64 address, i64 bytes, unsigned char* __restrict__ to) {
  const unsigned char* from = reinterpret_cast<const unsigned char*>(address);
  const i64 thread = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  const i64 threads = i64(gridDim.x) * blockDim.x, whole = bytes / i64(sizeof(uint4));
  for (i64 w = thread; w < whole; w += threads)
    reinterpret_cast<uint4*>(to)[w] = reinterpret_cast<const uint4*>(from)[w];
  for (i64 i = whole * i64(sizeof(uint4)) + thread; i < bytes; i += threads) to[i] = from[i];
}

// sets of all patterns -> planes, every pattern from a word of its own: one thread a word.
extern "C" __global__ void pack_patterns(const unsigned char* __restrict__ sets,
                                         const i64* __restrict__ offsets,
                                         const i64* __restrict__ words, u32 n_patterns,
                                         uint4* __restrict__ planes) {
  for (u32 p = blockIdx.x; p < n_patterns; p += gridDim.x) {
    const i64 length = offsets[p + 1] - offsets[p];
    for (i64 w = threadIdx.x; w < words[p + 1] - words[p]; w += blockDim.x) {
      uint4 out = make_uint4(0, 0, 0, 0);
      for (u32 i = 0; i < 32; ++i) {
        const u32 set = w * 32 + i < length ? sets[offsets[p] + w * 32 + i] : 15;
        out.x |= (set & 1) << i;
        out.y |= ((set >> 1) & 1) << i;
        out.z |= ((set >> 2) & 1) << i;
        out.w |= ((set >> 3) & 1) << i;
      }
      planes[words[p] + w] = out;
    }
  }
}

// The longest run of single bases in each pattern; `longest` and more is reported as `longest`.
extern "C" __global__ void longest_runs(const uint4* __restrict__ planes,
                                        const i64* __restrict__ words, u32 n_patterns, u32 longest,
                                        int* __restrict__ runs) {
  const u32 p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= n_patterns) return;
  u32 run = 0, best = 0;
  for (i64 w = words[p]; w < words[p + 1] && best < longest; ++w) {
    const u32 clean = single(planes[w]);
    if (clean == ALL) {
      run += 32;
    } else {
      run += __ffs(~clean) - 1;
      best = max(best, run);
      for (u32 rest = clean & (ALL << (__ffs(~clean) - 1)); rest;) {
        const u32 begin = __ffs(rest) - 1;
        const u32 stop = ~clean & (ALL << begin);
        run = (stop ? __ffs(stop) - 1 : 32) - begin;
        best = max(best, run);
        rest = stop ? clean & (ALL << (__ffs(stop) - 1)) : 0;
      }
      if (!(clean >> 31)) run = 0;
    }
    best = max(best, run);
  }
  runs[p] = min(best, longest);
}

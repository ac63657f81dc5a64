// Bit planes: word w holds positions 32 w .. 32 w + 31, one bit each, in four planes
// x = A, y = C, z = G, w = T. Behind the last base every plane is set.

using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

constexpr u32 ALL = 0xFFFFFFFFu;

// A word with as many low bits set: none for a negative number, all from 32 on.
__device__ __forceinline__ u32 below(int count) {
  return count <= 0 ? 0 : count >= 32 ? ALL : (1u << count) - 1;
}

// Which positions stand for exactly one base.
__device__ __forceinline__ u32 single(uint4 p) {
  return ~((p.x & p.y) | ((p.x | p.y) & (p.z | p.w)) | (p.z & p.w));
}

// The 32 bases that begin at bit `shift` (0..31) of the first of two neighbouring words.
__device__ __forceinline__ uint4 shifted(uint4 a, uint4 b, u32 shift) {
  return make_uint4(__funnelshift_r(a.x, b.x, shift), __funnelshift_r(a.y, b.y, shift),
                    __funnelshift_r(a.z, b.z, shift), __funnelshift_r(a.w, b.w, shift));
}

__device__ __forceinline__ uint4 window(const uint4* __restrict__ planes, u32 position) {
  const u32 word = position >> 5;
  return shifted(planes[word], planes[word + 1], position & 31);
}

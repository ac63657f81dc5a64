// Nodes of a grid laid out as cells for trilinear interpolation (field.cuh).
#include "field.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    pack_cells(Field field, const float* nodes, unsigned channels, float4* cells) {
  const unsigned long long planes = (unsigned long long)channels * (field.nx + 1);
  const unsigned long long rows = planes * field.ny;
  for (unsigned long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const unsigned y = unsigned(row % field.ny), next = min(y + 1, field.ny - 1);
    const unsigned long long plane = row / field.ny, channel = plane / (field.nx + 1);
    const unsigned x = min(unsigned(plane % (field.nx + 1)), field.nx - 1);
    const float* values = nodes + (channel * field.nx + x) * field.ny * field.nz;
    const float *low = values + size_t(y) * field.nz, *high = values + size_t(next) * field.nz;
    for (unsigned z = threadIdx.x; z < field.nz; z += THREADS) {
      const unsigned beyond = min(z + 1, field.nz - 1);
      cells[row * field.nz + z] = make_float4(low[z], low[beyond], high[z], high[beyond]);
    }
  }
}

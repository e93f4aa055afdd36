#pragma once

// Marks functions that kernels of a GPU call too.
#ifdef __CUDACC__
#define PORTABLE __host__ __device__
#else
#define PORTABLE
#endif

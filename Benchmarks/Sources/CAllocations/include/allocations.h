#ifndef VITRINE_BENCHMARKS_ALLOCATIONS_H
#define VITRINE_BENCHMARKS_ALLOCATIONS_H
#include <stddef.h>

/// How many blocks the calling thread has asked the C library for. 0 for ever where they cannot be counted.
long benchmark_allocations(void);

/// Bytes handed out and not taken back, as the C library counts them.
size_t benchmark_heap_bytes(void);

#endif

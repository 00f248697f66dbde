#include "allocations.h"

#if defined(__GLIBC__) || defined(__linux__)
#include <malloc.h>
#include <errno.h>

// The executable's own malloc comes before the C library's, which stays reachable under these names.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static __thread long count;

void *malloc(size_t size) { count++; return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { count++; return __libc_calloc(number, size); }
void *realloc(void *block, size_t size) { count++; return __libc_realloc(block, size); }
void *aligned_alloc(size_t alignment, size_t size) { count++; return __libc_memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size)
{
    count++;
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}

long benchmark_allocations(void) { return count; }

size_t benchmark_heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}
#else
long benchmark_allocations(void) { return 0; }
size_t benchmark_heap_bytes(void) { return 0; }
#endif

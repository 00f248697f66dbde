#include "allocation.h"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

void vitrine_server_configure_allocator(void) {
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 2 << 20);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
}

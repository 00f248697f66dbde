#include "allocation.h"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

void vitrine_server_share_arenas(void) {
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 2);
#endif
}

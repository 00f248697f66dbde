#ifndef VITRINE_SERVER_ALLOCATION_H
#define VITRINE_SERVER_ALLOCATION_H

// Makes the allocator share two arenas among all threads, where it has arenas (mallopt(3)). To be called before any
// other thread is started.
void vitrine_server_share_arenas(void);

#endif

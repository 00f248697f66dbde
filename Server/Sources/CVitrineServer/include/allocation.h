#ifndef VITRINE_SERVER_ALLOCATION_H
#define VITRINE_SERVER_ALLOCATION_H

// Makes the allocator share two arenas among all threads, where it has arenas, and return large blocks to the system as
// soon as they are freed (mallopt(3)). To be called before any other thread is started.
void vitrine_server_configure_allocator(void);

#endif

#ifndef VITRINE_SERVER_PAGES_H
#define VITRINE_SERVER_PAGES_H

#include <stddef.h>

// A file of the pages that the server shows, from the folder "pages".
typedef struct {
    const char *name;
    // The media type.
    const char *type;
    const unsigned char *bytes;
    size_t count;
} vitrine_server_page_file;

int vitrine_server_page_count(void);

// A file by its place from 0; all members are null for another one.
vitrine_server_page_file vitrine_server_page(int place);

#endif

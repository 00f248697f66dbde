#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// An archive in RAR or 7z, read from memory by libarchive. No other format and no filter is tried.
typedef struct carchive carchive;

typedef enum {
    CARCHIVE_OK = 0,
    CARCHIVE_END,
    CARCHIVE_ENCRYPTED,
    CARCHIVE_UNSUPPORTED,
    CARCHIVE_CORRUPT,
    CARCHIVE_MEMORY,
} carchive_status;

typedef struct {
    // Valid until the next call; NULL for a name that cannot be converted.
    const char *name;
    // Whether it has content: no directory, link or device.
    bool is_file;
    bool is_encrypted;
    // Bytes of the content as announced; -1 if unknown.
    int64_t size;
} carchive_entry;

// NULL if there is no memory or the bytes are no such archive. The bytes must stay.
carchive *carchive_open(const void *bytes, size_t count);
carchive_status carchive_next(carchive *archive, carchive_entry *entry);
// Reads the content of the last entry; *got is 0 at its end.
carchive_status carchive_read(carchive *archive, void *buffer, size_t count, size_t *got);
void carchive_close(carchive *archive);

// Shared libraries that are loaded when they are first needed, so that programs which do not need them start faster.
#pragma once

#include <stddef.h>

// A library that is loaded at its first use. Its first members are given, the others are 0.
typedef struct {
    const char *name, *advice;
    const char *const *symbols;
    void **functions;
    size_t count;
    int is_loaded;
    const char *reason;
} clibraries_library;

// Loads a library if it is not yet. Returns NULL, or the reason why it failed. The next call tries again, as there may
// have been no descriptors or no memory. Safe on all threads.
const char *clibraries_need(clibraries_library *library);

// Loads the library `name`, for example "libcurl.so.4", and writes the addresses of its functions to `functions`, in
// the order of `symbols`. Returns NULL, or the reason why it failed: text that is never freed. A library stays loaded.
// `advice` ends the reason.
const char *clibraries_load(
    const char *name, const char *advice, const char *const *symbols, void **functions, size_t count);

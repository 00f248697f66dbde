// Shared libraries that are loaded when they are first needed, so that programs which do not need them start faster.
#pragma once

#include <stddef.h>

// Loads the library `name`, for example "libcurl.so.4", and writes the addresses of its functions to `functions`, in
// the order of `symbols`. Returns NULL, or the reason why it failed: text that is never freed. A library stays loaded.
// `advice` ends the reason.
const char *clibraries_load(
    const char *name, const char *advice, const char *const *symbols, void **functions, size_t count);

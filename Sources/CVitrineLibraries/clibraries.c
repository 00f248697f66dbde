#include "clibraries.h"

#include <dlfcn.h>
#include <stdio.h>

// A reason is kept for the life of the process, as every later call returns it again.
static const char *failure(const char *name, const char *advice) {
    const char *reason = dlerror();
    char *text = NULL;
    if (asprintf(&text, "%s; %s", reason ? reason : name, advice) < 0) return "out of memory";
    return text;
}

const char *clibraries_load(
    const char *name, const char *advice, const char *const *symbols, void **functions, size_t count) {
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!library) return failure(name, advice);
    for (size_t i = 0; i < count; i++) {
        functions[i] = dlsym(library, symbols[i]);
        if (functions[i]) continue;
        const char *reason = failure(name, advice);
        dlclose(library);
        return reason;
    }
    return NULL;
}

#include "clibraries.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A reason is never freed, as others may read it.
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

const char *clibraries_need(clibraries_library *library) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    if (__atomic_load_n(&library->is_loaded, __ATOMIC_ACQUIRE)) return NULL;
    pthread_mutex_lock(&mutex);
    const char *reason = NULL;
    if (!library->is_loaded) {
        reason = clibraries_load(
            library->name, library->advice, library->symbols, library->functions, library->count);
        // One copy of each reason is enough.
        if (reason && library->reason && strcmp(reason, library->reason) == 0) {
            if (strcmp(reason, "out of memory") != 0) free((void *)reason);
            reason = library->reason;
        } else if (reason) {
            library->reason = reason;
        }
        if (!reason) __atomic_store_n(&library->is_loaded, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mutex);
    return reason;
}

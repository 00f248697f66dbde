#include "ccurl_internal.h"

#include <clibraries.h>
#include <pthread.h>

ccurl_functions ccurl_library;

static const char *missing;

static void load(void) {
    static const char *const symbols[] = {
#define X(name) #name,
        CCURL_FUNCTIONS(X)
#undef X
    };
    // The number is that of the interface, which has been the same since 2006.
    missing = clibraries_load(
        "libcurl.so.4", "install libcurl4", symbols, (void **)&ccurl_library, sizeof symbols / sizeof *symbols);
    if (!missing) curl_global_init(CURL_GLOBAL_DEFAULT);
}

const char *ccurl_missing(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return missing;
}

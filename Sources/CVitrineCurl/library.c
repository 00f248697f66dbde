#include "ccurl_internal.h"

#include <clibraries.h>
#include <pthread.h>

ccurl_functions ccurl_library;

static const char *const symbols[] = {
#define X(name) #name,
    CCURL_FUNCTIONS(X)
#undef X
};

// The number is that of the interface, which has been the same since 2006.
static clibraries_library library = {
    .name = "libcurl.so.4", .advice = "install libcurl4", .symbols = symbols, .functions = (void **)&ccurl_library,
    .count = sizeof symbols / sizeof *symbols,
};

static void initialize(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }

const char *ccurl_missing(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *missing = clibraries_need(&library);
    if (!missing) pthread_once(&once, initialize);
    return missing;
}

#include "cavif.h"
#include "library.h"

#ifdef __linux__
#include <clibraries.h>
#include <pthread.h>

cavif_functions cavif_library;

// The interface that the headers describe: structures differ between the two.
#if AVIF_VERSION_MAJOR >= 1
#define NAME "libavif.so.16"
#define ADVICE "install libavif16"
#else
#define NAME "libavif.so.15"
#define ADVICE "install libavif15"
#endif

static const char *missing;

static void load(void) {
    static const char *const symbols[] = {
#define X(name) #name,
        CAVIF_FUNCTIONS(X)
#undef X
    };
    missing = clibraries_load(
        NAME, ADVICE, symbols, (void **)&cavif_library, sizeof symbols / sizeof *symbols);
}

const char *cavif_missing(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return missing;
}
#else
const char *cavif_missing(void) { return NULL; }
#endif

const char *cavif_version(void) { return cavif_missing() ? "" : avifVersion(); }

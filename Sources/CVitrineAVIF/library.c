#include "cavif.h"
#include "library.h"

#ifdef __linux__
#include <clibraries.h>

cavif_functions cavif_library;

// The interface that the headers describe: structures differ between them.
#if AVIF_VERSION_MAJOR >= 1
#define NAME "libavif.so.16"
#define ADVICE "install libavif16"
#elif AVIF_VERSION_MINOR >= 11
#define NAME "libavif.so.15"
#define ADVICE "install libavif15"
#elif AVIF_VERSION_MINOR == 10
#define NAME "libavif.so.14"
#define ADVICE "install libavif14"
#else
#define NAME "libavif.so.13"
#define ADVICE "install libavif13"
#endif

static const char *const symbols[] = {
#define X(name) #name,
    CAVIF_FUNCTIONS(X)
#undef X
};

static clibraries_library library = {
    .name = NAME, .advice = ADVICE, .symbols = symbols, .functions = (void **)&cavif_library,
    .count = sizeof symbols / sizeof *symbols,
};

const char *cavif_missing(void) { return clibraries_need(&library); }
#else
const char *cavif_missing(void) { return NULL; }
#endif

const char *cavif_version(void) { return cavif_missing() ? "" : avifVersion(); }

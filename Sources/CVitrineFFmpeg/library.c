#include "library.h"

#ifdef __linux__
#include "image.h"
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cffmpeg_functions cffmpeg_library;

static const char *missing;

#define NAME(library, version) "lib" library ".so." AV_STRINGIFY(version)

// Each behind those that it needs. Decoders of sound call libswresample.
static const char *const libraries[] = {
    NAME("avutil", LIBAVUTIL_VERSION_MAJOR),
    NAME("swresample", LIBSWRESAMPLE_VERSION_MAJOR),
    NAME("avcodec", LIBAVCODEC_VERSION_MAJOR),
    NAME("avformat", LIBAVFORMAT_VERSION_MAJOR),
    NAME("swscale", LIBSWSCALE_VERSION_MAJOR),
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

// The libraries that decoders and containers of the lists in open.c call: compression, AV1 and arithmetic.
static const char *const needed[] = {"libz.so.", "libbz2.so.", "liblzma.so.", "libdav1d.so.", "libm.so.", NULL};

static const char *const names[] = {
#define X(name) #name,
    CFFMPEG_FUNCTIONS(X)
#undef X
};
enum { FUNCTIONS = sizeof names / sizeof *names };

// Where a call of an absent function leads during the rehearsal.
static jmp_buf absence;
static bool is_rehearsing;

static void absent(void) {
    if (is_rehearsing) longjmp(absence, 1);
    abort();
}

// What probing calls for every file, and what the table of codecs calls once, to describe encoders: the answer of each
// is none or version 0.
static void *nothing(void) { return NULL; }
static const char *no_header(const void *bytes) { (void)bytes; return ""; }

static void *substitute(const char *name) {
    static const char *const queries[] = {
        "openmpt_probe_file_header", "vpx_codec_version", "vpx_codec_get_caps", "vpx_codec_vp9_cx", "aom_codec_version",
        "aom_codec_get_caps", "aom_codec_av1_cx", "x265_api_get",
    };
    if (!strcmp(name, "gme_identify_header")) return (void *)no_header;
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        if (!strncmp(name, queries[i], strlen(queries[i]))) return (void *)nothing;
    return (void *)absent;
}

// Probes a file of zeros for all containers and looks for a codec. False if a function of this version is absent.
static bool rehearse(void) {
    static uint8_t zeros[2048 + AVPROBE_PADDING_SIZE];
    AVProbeData data = {.filename = "", .buf = zeros, .buf_size = 2048};
    int score = 0;
    is_rehearsing = true;
    if (setjmp(absence)) {
        is_rehearsing = false;
        return false;
    }
    av_probe_input_format3(&data, 1, &score);
    avcodec_find_decoder_by_name("hevc");
    is_rehearsing = false;
    return true;
}

// Loads the libraries alone. False if one of them needs the dynamic linker.
static bool load_alone(void **functions) {
    const char *how = getenv("VITRINE_VIDEO_LIBRARIES");
    if (how && !strcmp(how, "all")) return false;
    static cffmpeg_images images = {.needed = needed, .substitute = substitute};
    for (int i = 0; i < LIBRARIES; i++)
        if (!cffmpeg_map_image(&images, libraries[i])) return false;
    for (int i = 0; i < FUNCTIONS; i++)
        if (!(functions[i] = cffmpeg_image_symbol(&images, names[i]))) return false;
    return rehearse();
}

// Loads the libraries with all others that they name.
static const char *load_all(void **functions) {
    void *handles[LIBRARIES];
    for (int i = 0; i < LIBRARIES; i++) handles[i] = dlopen(libraries[i], RTLD_LAZY | RTLD_GLOBAL);
    for (int i = 0; i < FUNCTIONS; i++) {
        functions[i] = NULL;
        for (int k = 0; k < LIBRARIES && !functions[i]; k++)
            if (handles[k]) functions[i] = dlsym(handles[k], names[i]);
        if (functions[i]) continue;
        const char *reason = dlerror();
        static char text[256];
        snprintf(text, sizeof text, "%s; install libavformat, libavcodec and libswscale", reason ? reason : names[i]);
        return text;
    }
    return NULL;
}

static void load(void) {
    void **functions = (void **)&cffmpeg_library;
    missing = load_alone(functions) ? NULL : load_all(functions);
}

const char *cffmpeg_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return missing;
}
#else
const char *cffmpeg_load(void) { return NULL; }
#endif

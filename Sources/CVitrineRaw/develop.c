#include "craw.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<libraw/libraw.h>)
#define CRAW_COMPILED 1
#endif
#endif

#ifdef CRAW_COMPILED
#include <libraw/libraw.h>

#define TEXT(x) #x
#define EXPANDED(x) TEXT(x)

// The functions of LibRaw's C interface that are used.
static struct {
    libraw_data_t *(*init)(unsigned);
    int (*open_buffer)(libraw_data_t *, void *, size_t);
    int (*adjust_sizes)(libraw_data_t *);
    int (*unpack)(libraw_data_t *);
    int (*process)(libraw_data_t *);
    libraw_processed_image_t *(*make_image)(libraw_data_t *, int *);
    void (*clear_image)(libraw_processed_image_t *);
    void (*close)(libraw_data_t *);
    int (*version)(void);
    bool loaded;
} raw;

static void *library;

static void *find(const char *name) { return dlsym(library, name); }

bool craw_load(void) {
    if (raw.loaded) return true;
    // One thread: the sandbox permits no others.
    setenv("OMP_NUM_THREADS", "1", 1);
    library = dlopen("libraw_r.so." EXPANDED(LIBRAW_SHLIB_CURRENT), RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    *(void **)&raw.init = find("libraw_init");
    *(void **)&raw.open_buffer = find("libraw_open_buffer");
    *(void **)&raw.adjust_sizes = find("libraw_adjust_sizes_info_only");
    *(void **)&raw.unpack = find("libraw_unpack");
    *(void **)&raw.process = find("libraw_dcraw_process");
    *(void **)&raw.make_image = find("libraw_dcraw_make_mem_image");
    *(void **)&raw.clear_image = find("libraw_dcraw_clear_mem");
    *(void **)&raw.close = find("libraw_close");
    *(void **)&raw.version = find("libraw_versionNumber");
    // The layout of its structures is that of one minor version.
    raw.loaded = raw.init && raw.open_buffer && raw.adjust_sizes && raw.unpack && raw.process && raw.make_image
        && raw.clear_image && raw.close && raw.version && raw.version() >> 8 == LIBRAW_VERSION >> 8;
    return raw.loaded;
}

static craw_status status_of(int code) {
    switch (code) {
    case LIBRAW_SUCCESS: return CRAW_OK;
    case LIBRAW_FILE_UNSUPPORTED: return CRAW_UNSUPPORTED;
    case LIBRAW_IO_ERROR: return CRAW_TRUNCATED;
    case LIBRAW_UNSUFFICIENT_MEMORY:
    case LIBRAW_TOO_BIG: return CRAW_MEMORY;
    default: return CRAW_CORRUPT;
    }
}

static craw_status opened(const uint8_t *bytes, size_t count, libraw_data_t **out) {
    if (!raw.loaded) return CRAW_ABSENT;
    libraw_data_t *data = raw.init(LIBRAW_OPTIONS_NONE);
    if (!data) return CRAW_MEMORY;
    data->params.output_bps = 8;
    data->params.use_camera_wb = 1;
    data->params.output_color = 1;
    // LibRaw only reads the buffer.
    int code = raw.open_buffer(data, (void *)bytes, count);
    if (code != LIBRAW_SUCCESS) {
        raw.close(data);
        return status_of(code);
    }
    *out = data;
    return CRAW_OK;
}

craw_status craw_measure(const uint8_t *bytes, size_t count, int64_t *width, int64_t *height) {
    libraw_data_t *data = NULL;
    craw_status status = opened(bytes, count, &data);
    if (status != CRAW_OK) return status;
    int code = raw.adjust_sizes(data);
    *width = data->sizes.iwidth;
    *height = data->sizes.iheight;
    raw.close(data);
    if (code != LIBRAW_SUCCESS) return status_of(code);
    return *width > 0 && *height > 0 ? CRAW_OK : CRAW_CORRUPT;
}

craw_status craw_develop(const uint8_t *bytes, size_t count, bool half, int64_t max_pixels, craw_picture *picture) {
    libraw_data_t *data = NULL;
    craw_status status = opened(bytes, count, &data);
    if (status != CRAW_OK) return status;
    libraw_processed_image_t *image = NULL;
    int code = 0;
    if ((int64_t)data->sizes.raw_width * data->sizes.raw_height > max_pixels) {
        status = CRAW_PIXELS;
    } else {
        data->params.half_size = half;
        code = raw.unpack(data);
        if (code == LIBRAW_SUCCESS) code = raw.process(data);
        if (code == LIBRAW_SUCCESS) image = raw.make_image(data, &code);
        status = image ? CRAW_OK : code == LIBRAW_SUCCESS ? CRAW_CORRUPT : status_of(code);
    }
    raw.close(data);
    if (!image) return status;
    size_t needed = (size_t)image->width * image->height * 3;
    if (image->type != LIBRAW_IMAGE_BITMAP || image->bits != 8 || (image->colors != 3 && image->colors != 1)
        || needed == 0 || image->data_size < needed / 3 * image->colors) {
        status = CRAW_UNSUPPORTED;
    } else if (!(picture->pixels = malloc(needed))) {
        status = CRAW_MEMORY;
    } else {
        if (image->colors == 3) {
            memcpy(picture->pixels, image->data, needed);
        } else {
            for (size_t i = 0; i < needed; i++) picture->pixels[i] = image->data[i / 3];
        }
        picture->count = needed;
        picture->width = image->width;
        picture->height = image->height;
    }
    raw.clear_image(image);
    return status;
}

#else

bool craw_load(void) { return false; }

craw_status craw_measure(const uint8_t *bytes, size_t count, int64_t *width, int64_t *height) {
    return CRAW_ABSENT;
}

craw_status craw_develop(const uint8_t *bytes, size_t count, bool half, int64_t max_pixels, craw_picture *picture) {
    return CRAW_ABSENT;
}

#endif

void craw_free(void *pixels) { free(pixels); }

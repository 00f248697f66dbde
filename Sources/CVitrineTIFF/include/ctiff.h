// libtiff behind plain types: decoding the varieties of TIFF that libvips rejects or reads wrongly. For one thread.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    CTIFF_OK = 0,
    CTIFF_ORDINARY,    // a variety that libvips reads: nothing has been decoded
    CTIFF_UNSUPPORTED, // a variety that nobody here reads
    CTIFF_CORRUPT,
    CTIFF_TRUNCATED,
    CTIFF_PIXELS, // more pixels than allowed: `actual`
    CTIFF_SIDE,   // a longer side than allowed: `actual`
    CTIFF_MEMORY, // more memory than allowed, `actual` in bytes, or than there is
    CTIFF_NO_PAGE
} ctiff_status;

typedef struct {
    int64_t width, height; // size the picture will be scaled to, as stored; 0 for every pixel
    int32_t page;
    bool allow_partial;
    int64_t max_pixels, max_side, max_memory;
} ctiff_request;

typedef enum { CTIFF_GRAY, CTIFF_RGB, CTIFF_CMYK } ctiff_model;
typedef enum { CTIFF_OPAQUE, CTIFF_STRAIGHT, CTIFF_PREMULTIPLIED } ctiff_alpha;

typedef struct {
    uint8_t *pixels; // rows without gaps, as stored; give back with ctiff_free
    size_t count;
    int32_t width, height, channels;
    double extent_width, extent_height; // samples that the picture spans, within width and height
    ctiff_model model;
    ctiff_alpha alpha;
    bool is_srgb; // samples have been converted: the file's profile no longer applies
    bool is_partial;
    int64_t actual; // the number behind CTIFF_PIXELS, CTIFF_SIDE and CTIFF_MEMORY
} ctiff_picture;

// Decodes one page. The bytes must stay as they are until the call returns. `error` gets a text.
ctiff_status ctiff_decode(const void *bytes, size_t count, const ctiff_request *, ctiff_picture *, char *error,
                          size_t error_size);
void ctiff_free(void *);

// The version of libtiff, for example "4.5.0".
const char *ctiff_version(void);

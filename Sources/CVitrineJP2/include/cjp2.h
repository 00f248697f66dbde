// OpenJPEG behind plain types: decoding JPEG 2000 at a size. For one thread.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    CJP2_OK = 0,
    CJP2_UNSUPPORTED, // a variety that is not read here
    CJP2_CORRUPT,
    CJP2_TRUNCATED,
    CJP2_PIXELS, // more pixels than allowed: `actual`
    CJP2_MEMORY  // more memory than allowed, `actual` in bytes, or than there is
} cjp2_status;

typedef struct {
    int64_t width, height; // size the picture will be scaled to; 0 for every pixel
    int32_t region_x, region_y, region_width, region_height; // the part that is wanted; no width for all
    bool allow_partial;
    int64_t max_pixels, max_memory;
} cjp2_request;

typedef enum { CJP2_GRAY, CJP2_RGB, CJP2_CMYK } cjp2_model;
typedef enum { CJP2_OPAQUE, CJP2_STRAIGHT, CJP2_PREMULTIPLIED } cjp2_alpha;

typedef struct {
    uint8_t *pixels; // rows without gaps; give back with cjp2_free
    size_t count;
    int32_t width, height, channels;
    double extent_width, extent_height; // samples that the picture spans, within width and height
    cjp2_model model;
    cjp2_alpha alpha;
    bool is_partial;
    bool has_region; // only this part of the picture, which contains the one that was wanted
    int32_t region_x, region_y, region_width, region_height;
    int64_t actual; // the number behind CJP2_PIXELS and CJP2_MEMORY
} cjp2_picture;

// Decodes a JP2 file or a codestream. The bytes must stay as they are until the call returns. Anything that the library
// reports as an error fails, unless a partial picture is allowed. `error` gets its text.
cjp2_status cjp2_decode(const void *bytes, size_t count, const cjp2_request *, cjp2_picture *, char *error,
                        size_t error_size);
void cjp2_free(void *);

// The version of OpenJPEG, for example "2.5.0".
const char *cjp2_version(void);

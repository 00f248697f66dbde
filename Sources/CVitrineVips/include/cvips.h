// libvips behind plain types: decoding at a size. All variadic calls and GLib types stay inside.
// Not thread-safe as to error texts, which libvips keeps per process: meant for a process that does one thing at a time.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    CVIPS_OK = 0,
    CVIPS_UNSUPPORTED, // no loader for it here, or a variety that the loader does not read
    CVIPS_CORRUPT,
    CVIPS_TRUNCATED,
    CVIPS_PIXELS, // more pixels than allowed: `actual`
    CVIPS_SIDE,   // a longer side than allowed: `actual`
    CVIPS_MEMORY,
    CVIPS_NO_PAGE,
    CVIPS_FAILED // anything else
} cvips_status;

typedef enum {
    CVIPS_JPEG, CVIPS_PNG, CVIPS_WEBP, CVIPS_GIF, CVIPS_TIFF, CVIPS_HEIF, CVIPS_SVG
} cvips_format;

typedef struct {
    cvips_format format;
    int64_t width, height; // size the picture will be scaled to, as stored; 0 for every pixel
    int32_t page;
    int32_t orientation; // Exif value that the loader applies by itself and that is to be taken back; 1 for none
    bool allow_partial;
    bool keep_depth; // samples of 16 bits stay as they are
    bool allow_thumbnail; // HEIF: the thumbnail will do, if it is as large as `width` by `height` and of the same shape
    int64_t max_pixels, max_side;
    int32_t region_x, region_y, region_width, region_height; // the part that is wanted, as stored; no width for all
} cvips_request;

typedef enum { CVIPS_GRAY, CVIPS_RGB, CVIPS_CMYK } cvips_model;
typedef enum { CVIPS_OPAQUE, CVIPS_STRAIGHT, CVIPS_PREMULTIPLIED } cvips_alpha;

typedef struct {
    void *pixels; // rows without gaps; give back with cvips_free
    size_t count;
    int32_t width, height, channels;
    double extent_width, extent_height; // samples that the picture spans, within width and height
    cvips_model model;
    cvips_alpha alpha;
    bool is_deep;    // samples are words that span 16 bits
    bool is_srgb;    // samples have been converted: the file's profile no longer applies
    bool is_partial;
    bool has_region; // only this part of the picture as stored, which contains the one that was wanted
    int32_t region_x, region_y, region_width, region_height;
    int64_t actual; // the number behind CVIPS_PIXELS and CVIPS_SIDE
} cvips_picture;

// Initialises the library: one thread an operation, no operation cache, no warnings on stderr, untrusted loaders blocked
// but those of the formats above.
cvips_status cvips_start(void);
// Whether a library has reported a defect since the start, such as a failed assertion: memory may be damaged.
bool cvips_has_failed_check(void);
// Decodes the bytes, which must stay as they are until the call returns.
cvips_status cvips_decode(const void *bytes, size_t count, const cvips_request *, cvips_picture *);
void cvips_free(void *);

// The version of libvips, for example "8.14.1".
const char *cvips_version(void);

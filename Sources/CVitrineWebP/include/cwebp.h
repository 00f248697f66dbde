// WebP decoding, demultiplexing and encoding over libwebp, in plain C types.
#pragma once

#include <stddef.h>
#include <stdint.h>

// What a call came to.
enum {
    CWEBP_OK = 0,
    CWEBP_MORE = 1,         // the bytes end before the picture does
    CWEBP_CORRUPT = 2,      // the bytes break the rules of the format
    CWEBP_MEMORY = 3,       // no memory
    CWEBP_REFUSED = 4,      // an argument or a variety the library does not take
};

typedef struct {
    int width, height;      // of the canvas for animations
    int has_alpha, has_animation;
    int is_lossless;        // 0 also for animations
} cwebp_features;

// Reads the header. CWEBP_OK, CWEBP_MORE or CWEBP_CORRUPT.
int cwebp_read_features(const uint8_t *data, size_t count, cwebp_features *features);

// A decoder of one still picture into the caller's memory, which outlives it; fed with ever longer prefixes of the
// file.
typedef struct cwebp_decoder cwebp_decoder;

// `y` holds `height` rows, `u` and `v` hold (height + 1) / 2 rows. `draft` leaves out the deblocking filter.
cwebp_decoder *cwebp_decoder_create_yuv(int width, int height, uint8_t *y, int y_stride, uint8_t *u, uint8_t *v,
                                        int uv_stride, int draft);
// The colours of pixels in one interleaved plane.
enum {
    CWEBP_RGB = 0,
    CWEBP_RGBA = 1,
    CWEBP_RGBA_PREMULTIPLIED = 2,
};
// `draft` leaves out the deblocking filter and interpolates chroma by repetition.
cwebp_decoder *cwebp_decoder_create_rgb(int width, int height, uint8_t *pixels, int stride, int layout, int draft);
void cwebp_decoder_destroy(cwebp_decoder *decoder);
// Decodes as far as the first `count` bytes of the file go. CWEBP_MORE means that it is not complete yet.
int cwebp_decoder_update(cwebp_decoder *decoder, const uint8_t *data, size_t count);
// Rows that are final, from the top.
int cwebp_decoder_rows(const cwebp_decoder *decoder);

// A table of the frames of a file, which outlives it.
typedef struct cwebp_demuxer cwebp_demuxer;

typedef struct {
    int x, y, width, height;
    int has_alpha;
    int blends;             // over what is there, instead of replacing it
    int clears;             // its rectangle becomes transparent afterwards
    int is_complete;
    const uint8_t *data;    // a whole still WebP for the decoder above, within the file
    size_t count;
} cwebp_frame;

// NULL when the container is broken. With `partial`, a file that ends early is accepted.
cwebp_demuxer *cwebp_demuxer_create(const uint8_t *data, size_t count, int partial);
void cwebp_demuxer_destroy(cwebp_demuxer *demuxer);
int cwebp_demuxer_frame_count(const cwebp_demuxer *demuxer);
void cwebp_demuxer_canvas(const cwebp_demuxer *demuxer, int *width, int *height);
// Frame `index`, from 0. Non-zero when it exists.
int cwebp_demuxer_frame(const cwebp_demuxer *demuxer, int index, cwebp_frame *frame);

typedef struct {
    const uint8_t *rgba;    // straight alpha
    int width, height, stride;
    int has_alpha;
    float quality;          // 0 to 100
    int method;             // 0 (fast) to 6 (small)
    int lossless;
    const uint8_t *exif, *xmp;  // NULL for none
    size_t exif_count, xmp_count;
} cwebp_encoding;

// A whole file in memory that cwebp_free() releases; NULL with `*reason` (static text) when the library refuses.
uint8_t *cwebp_encode(const cwebp_encoding *encoding, size_t *count, const char **reason);
void cwebp_free(void *bytes);

// An animation that is put together from still files.
typedef struct cwebp_animation cwebp_animation;
// `plays` is how often it is shown; 0 for ever. NULL without memory.
cwebp_animation *cwebp_animation_create(int width, int height, int plays);
// Adds a file of cwebp_encode() that replaces its part of the canvas. `x` and `y` are even. Non-zero on success.
int cwebp_animation_add(cwebp_animation *animation, const uint8_t *data, size_t count, int x, int y, int milliseconds);
// A whole file in memory that cwebp_free() releases; NULL when the library refuses.
uint8_t *cwebp_animation_finish(cwebp_animation *animation, size_t *count);
void cwebp_animation_destroy(cwebp_animation *animation);

// The version of libwebp: major << 16 | minor << 8 | patch.
int cwebp_version(void);

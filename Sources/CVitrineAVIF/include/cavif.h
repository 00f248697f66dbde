// AVIF decoding and encoding over libavif (0.11 or later), in plain C types.
#pragma once

#include <stddef.h>
#include <stdint.h>

// What a call came to.
enum {
    CAVIF_OK = 0,
    CAVIF_TRUNCATED = 1,
    CAVIF_CORRUPT = 2,
    CAVIF_MEMORY = 3,
    CAVIF_REFUSED = 4,      // a variety the library does not read
};

typedef struct cavif_decoder cavif_decoder;

enum {
    CAVIF_GRAY = 0,
    CAVIF_420 = 1,
    CAVIF_422 = 2,
    CAVIF_444 = 3,
};

// One decoded frame; the samples belong to the decoder. Samples deeper than 8 bits are 16-bit words.
typedef struct {
    int width, height, depth, layout;
    int full_range;
    int primaries, transfer, matrix;    // ITU-T H.273 code points
    int premultiplied;
    const void *y, *u, *v, *alpha;      // NULL where there is none
    size_t y_stride, u_stride, v_stride, alpha_stride;
} cavif_frame;

// Loads libavif. NULL, or the reason why it cannot be loaded: static text. Decoding and encoding fail then.
const char *cavif_missing(void);
// The version of the library, for example "1.2.1"; empty without the library.
const char *cavif_version(void);

// `data` outlives the decoder. At most `threads` threads, dav1d where it is built in. NULL without memory
// or without the library.
cavif_decoder *cavif_decoder_create(const uint8_t *data, size_t count, uint32_t maximum_pixels, uint32_t maximum_side,
                                    int threads);
void cavif_decoder_destroy(cavif_decoder *decoder);
// Reads the container.
int cavif_decoder_open(cavif_decoder *decoder);
// After opening: the size of the picture and the number of frames.
void cavif_decoder_describe(const cavif_decoder *decoder, uint32_t *width, uint32_t *height, uint32_t *frames);
// Decodes frame `index`, from 0.
int cavif_decoder_read(cavif_decoder *decoder, uint32_t index, cavif_frame *frame);
// Converts the frame read last to 8-bit RGB (3 channels), or RGBA (4 channels) as asked.
int cavif_decoder_convert(cavif_decoder *decoder, uint8_t *pixels, size_t stride, int channels, int premultiplied);
// The library's words about the last failure; valid until the next call.

typedef struct {
    const uint8_t *rgba;    // straight alpha, sRGB
    uint32_t width, height, stride;
    int has_alpha;
    int quantizer;          // 0 (best) to 63
    int speed;              // 0 (slow) to 10
    int full_chroma;        // 4:4:4 instead of 4:2:0
    const uint8_t *exif, *xmp;  // NULL for none
    size_t exif_count, xmp_count;
} cavif_encoding;

// A whole file in memory that cavif_free() releases; NULL with `*reason` (static text) when the library refuses.
uint8_t *cavif_encode(const cavif_encoding *encoding, size_t *count, const char **reason);
void cavif_free(uint8_t *bytes);

// A sequence whose frames have the size, the alpha and the chroma of the first.
typedef struct cavif_animation cavif_animation;
// Its frames get the quantizer and the speed of `encoding`, whose pixels and metadata do not count. `plays` is how often
// it is shown, 0 for ever; libraries before version 1.0 do not write it. NULL with `*reason` (static text) when it
// cannot be written.
cavif_animation *cavif_animation_create(const cavif_encoding *encoding, int plays, const char **reason);
// Adds a frame. Non-zero on success.
int cavif_animation_add(cavif_animation *animation, const uint8_t *rgba, uint32_t milliseconds, const char **reason);
// A whole file in memory that cavif_free() releases; NULL with `*reason` (static text) when the library refuses.
uint8_t *cavif_animation_finish(cavif_animation *animation, size_t *count, const char **reason);
void cavif_animation_destroy(cavif_animation *animation);

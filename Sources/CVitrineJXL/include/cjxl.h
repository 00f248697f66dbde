// libjxl behind plain types: whole frames averaged in blocks while they are decoded, and encoding. One thread.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    CJXL_OK = 0,
    CJXL_UNSUPPORTED,
    CJXL_CORRUPT,
    CJXL_TRUNCATED,
    CJXL_PIXELS, // more pixels than allowed: `actual`
    CJXL_SIDE,   // a longer side than allowed: `actual`
    CJXL_MEMORY,
    CJXL_NO_FRAME,
    CJXL_FAILED
} cjxl_status;

typedef struct {
    int64_t width, height; // size the picture will be scaled to, as stored; 0 for every pixel
    int32_t frame;
    bool allow_partial;
    int64_t max_pixels, max_side;
    size_t max_profile; // bytes of a profile worth handing over
} cjxl_request;

typedef struct {
    uint8_t *pixels; // rows without gaps; give back with cjxl_free
    size_t count;                    // bytes
    bool is_deep;                    // samples are words of this machine that span 16 bits
    int32_t width, height, channels; // 1 to 4: grey or colour, with alpha or without
    int32_t factor;                  // side of the blocks averaged
    double extent_width, extent_height;
    bool is_premultiplied, is_partial;
    int32_t primaries, transfer;     // code points of ITU-T H.273 for PQ and HLG; 0 for other colours
    uint8_t *profile; // ICC profile if samples are not sRGB; give back with cjxl_free
    size_t profile_count;
    int64_t actual;
} cjxl_picture;

// Decodes one frame of the bytes, as stored: the codestream's orientation is left to the caller.
cjxl_status cjxl_decode(const uint8_t *bytes, size_t count, const cjxl_request *, cjxl_picture *);
// An animation whose frames are decoded in order. `bytes` outlive it.
typedef struct cjxl_animation cjxl_animation;
// NULL without memory.
cjxl_animation *cjxl_animation_open(const uint8_t *bytes, size_t count, const cjxl_request *);
// Decodes the next frame; CJXL_NO_FRAME behind the last one. The frame and the partial input of the request do not count.
cjxl_status cjxl_animation_next(cjxl_animation *, cjxl_picture *);
void cjxl_animation_close(cjxl_animation *);
// Writes RGBA samples, rows without gaps. `quality` from 0 to 100, which is lossless.
cjxl_status cjxl_encode(const uint8_t *pixels, uint32_t width, uint32_t height, bool has_alpha, int32_t quality,
                        uint8_t **file, size_t *count);
void cjxl_free(void *);

// The version of libjxl, for example "0.7.0".
const char *cjxl_version(void);

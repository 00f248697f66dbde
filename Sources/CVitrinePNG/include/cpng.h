// PNG encoding by libpng. Every longjmp of libpng stays inside cpng_encode.
#pragma once
#include <stddef.h>
#include <stdint.h>

// What to write. Rows of 8-bit samples: 1 channel grey or palette index, 2 grey and alpha, 3 RGB, 4 RGBA (straight).
typedef struct {
    const uint8_t *pixels;
    size_t bytes_per_row;
    uint32_t width;
    uint32_t height;
    int channels;
    // Red, green, blue, alpha of each entry; NULL for no palette. Entries that are not opaque come first.
    const uint8_t *palette;
    int palette_count;
    int palette_transparent_count;
    int interlaced;
    // TIFF structure, NULL for none.
    const uint8_t *exif;
    size_t exif_count;
    // UTF-8, NULL for none.
    const char *xmp;
    size_t xmp_count;
} cpng_input;

typedef struct {
    uint8_t *bytes;
    size_t count;
    // libpng's message when it failed.
    char message[120];
} cpng_output;

// Returns 0 and bytes that cpng_free gives back, or -1 and a message.
int cpng_encode(const cpng_input *input, cpng_output *output);
void cpng_free(void *bytes);

// The version of libpng, for example "1.6.39".
const char *cpng_version(void);

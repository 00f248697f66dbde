#ifndef CRAW_H
#define CRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Develops raw files of cameras by LibRaw, if it is installed. LibRaw is loaded at run time: nothing links it.

typedef enum {
    CRAW_OK, CRAW_ABSENT, CRAW_UNSUPPORTED, CRAW_TRUNCATED, CRAW_CORRUPT, CRAW_PIXELS, CRAW_MEMORY
} craw_status;

// Upright rows of 8-bit sRGB without gaps; freed by craw_free.
typedef struct {
    uint8_t *pixels;
    size_t count;
    int64_t width, height;
} craw_picture;

// Loads LibRaw. Call it before a sandbox closes the file system. False when there is none of the version that this
// file was compiled with.
bool craw_load(void);

// The size of the developed, upright picture.
craw_status craw_measure(const uint8_t *bytes, size_t count, int64_t *width, int64_t *height);

// Develops the picture with the camera's white balance; of half the size if `half`.
craw_status craw_develop(const uint8_t *bytes, size_t count, bool half, int64_t max_pixels, craw_picture *picture);

void craw_free(void *pixels);

#endif

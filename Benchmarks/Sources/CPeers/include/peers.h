#pragma once
#include <stddef.h>
#include <stdint.h>

/// Prepares libvips as its users should: one thread an image, no operation cache.
int peers_start(void);
/// vips_thumbnail of a file into a box, written as JPEG of quality 75 to memory. Returns the bytes, 0 on failure.
size_t peers_vips_thumbnail(const char *path, int width, int height);
/// The same, left as 8-bit RGB: `*pixels` is the caller's to give back with peers_free.
int peers_vips_pixels(const char *path, int width, int height, uint8_t **pixels, int *out_width, int *out_height);
/// The full decode reduced to exactly `width` x `height` with Lanczos3 in floating point: the reference for quality.
int peers_reference(const char *path, int width, int height, uint8_t **pixels);
/// libjpeg-turbo's decode alone at `scale`/8, rows thrown away; the file is read into memory first. 0 on failure.
size_t peers_jpeg_decode(const char *path, int scale);
/// What this process has used: milliseconds of processor time, user and system, and megabytes of memory at most.
void peers_usage(double *milliseconds, double *peak);
void peers_free(void *pixels);

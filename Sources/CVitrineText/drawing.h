// The surface that pages and specimens are drawn on.
#pragma once
#include "ctext.h"
#include <cairo.h>

// A white surface of 24 bits a pixel; NULL without memory.
cairo_surface_t *ctext_surface(int32_t width, int32_t height);
// Ends a drawing on a surface, and copies its pixels unless something failed.
ctext_status ctext_finish(cairo_t *, cairo_surface_t *, int32_t width, int32_t height, uint8_t *pixels);

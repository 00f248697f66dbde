// pango, cairo, harfbuzz and freetype behind plain types: a page of text, a line, and a specimen of a font. For one thread.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    CTEXT_OK = 0,
    CTEXT_DAMAGED, // no font, or none with a glyph that can be drawn
    CTEXT_MEMORY
} ctext_status;

// How a part of the text looks.
typedef struct {
    uint32_t start, end; // bytes
    uint8_t red, green, blue;
    bool bold, italic, monospaced;
    float scale; // of the font's size
} ctext_run;

typedef struct {
    const char *text; // UTF-8
    size_t count;
    const ctext_run *runs;
    size_t run_count;
    bool monospaced; // else proportional, and lines are broken at words
    // In points: the page, its margin, and the size of the font.
    double width, height, margin, font_size;
} ctext_page;

// One line of text.
typedef struct {
    const char *text; // UTF-8
    size_t count;
    bool bold;
    double font_size; // pixels
} ctext_label;

// The version of pango, for example "1.50.12".
const char *ctext_version(void);
// Loads what drawing needs: lists of fonts, and the first ones.
void ctext_start(void);
// Draws a page in black on white. `pixels` has room for rows of red, green and blue without gaps.
ctext_status ctext_draw_page(const ctext_page *, int32_t width, int32_t height, uint8_t *pixels);
// Draws a line in black on white, in whatever fonts have its characters. The middle of a line that is wider than `width`
// becomes an ellipsis. A line that is written from the right begins at the right.
ctext_status ctext_draw_label(const ctext_label *, int32_t width, int32_t height, uint8_t *pixels);
// Draws a few letters of a font in black on white, as large as fits. `samples` are texts in UTF-8, each with its final
// 0, the last one empty: the first one whose characters the font has is drawn, or else its first glyphs.
ctext_status ctext_draw_font(const void *bytes, size_t count, const char *samples, int32_t width, int32_t height,
                             uint8_t *pixels);

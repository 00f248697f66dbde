#include "drawing.h"
#include <ft2build.h>
#include FT_FREETYPE_H
#include <harfbuzz/hb-ft.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Pixels of a font's size; larger ones are of no use to a picture, and cost memory.
static const double smallest = 4, largest = 4096;
// Glyphs of a specimen: those of a short sample, also where a writing needs several for a letter.
enum { maximum_glyphs = 32, glyphs_without_sample = 2 };

typedef struct {
    uint32_t index[maximum_glyphs];
    double x[maximum_glyphs], y[maximum_glyphs]; // the origin of each, y upwards
    unsigned count;
} line;

// Where the ink is, y downwards.
typedef struct {
    double left, top, right, bottom;
} box;

// The size that FreeType draws at: of an outline, or the nearest of its bitmaps. Returns pixels of the size that was
// asked for to one that is drawn; 0 if there is none.
static double set_size(FT_Face face, double size) {
    size = fmin(fmax(size, smallest), largest);
    if (FT_IS_SCALABLE(face)) return FT_Set_Pixel_Sizes(face, 0, (FT_UInt)lround(size)) ? 0 : 1;
    int best = -1;
    for (int i = 0; i < face->num_fixed_sizes; i++) {
        if (best < 0) best = i;
        long have = face->available_sizes[best].y_ppem, next = face->available_sizes[i].y_ppem;
        // The smallest that is large enough, or else the largest.
        if ((have < size * 64 && next > have) || (next >= size * 64 && next < have)) best = i;
    }
    if (best < 0 || FT_Select_Size(face, best)) return 0;
    double have = face->available_sizes[best].y_ppem / 64.0;
    if (have <= 0) have = face->available_sizes[best].height;
    return have > 0 ? size / have : 0;
}

static bool load(FT_Face face, uint32_t index) {
    if (FT_Load_Glyph(face, index, FT_LOAD_COLOR | FT_LOAD_NO_HINTING)) return false;
    return face->glyph->format == FT_GLYPH_FORMAT_BITMAP || !FT_Render_Glyph(face->glyph, FT_RENDER_MODE_NORMAL);
}

static bool shape(FT_Face face, const char *sample, line *line) {
    hb_font_t *font = hb_ft_font_create(face, NULL);
    hb_ft_font_set_load_flags(font, FT_LOAD_COLOR | FT_LOAD_NO_HINTING);
    hb_buffer_t *buffer = hb_buffer_create();
    hb_buffer_add_utf8(buffer, sample, -1, 0, -1);
    hb_buffer_guess_segment_properties(buffer);
    hb_shape(font, buffer, NULL, 0);
    unsigned count = 0;
    hb_glyph_info_t *infos = hb_buffer_get_glyph_infos(buffer, &count);
    hb_glyph_position_t *positions = hb_buffer_get_glyph_positions(buffer, &count);
    double x = 0, y = 0;
    line->count = 0;
    for (unsigned i = 0; i < count && line->count < maximum_glyphs; i++) {
        line->index[line->count] = infos[i].codepoint;
        line->x[line->count] = x + positions[i].x_offset / 64.0;
        line->y[line->count++] = y + positions[i].y_offset / 64.0;
        x += positions[i].x_advance / 64.0;
        y += positions[i].y_advance / 64.0;
    }
    hb_buffer_destroy(buffer);
    hb_font_destroy(font);
    return line->count > 0;
}

// The first glyphs that have ink, for fonts of symbols.
static bool first_glyphs(FT_Face face, line *line) {
    double x = 0;
    line->count = 0;
    for (long i = 1; i < face->num_glyphs && i < 512 && line->count < glyphs_without_sample; i++) {
        if (!load(face, (FT_UInt)i) || !face->glyph->bitmap.width) continue;
        line->index[line->count] = (uint32_t)i;
        line->x[line->count] = x;
        line->y[line->count++] = 0;
        x += face->glyph->advance.x / 64.0;
    }
    return line->count > 0;
}

// The code points of UTF-8 that the program itself wrote.
static uint32_t next_scalar(const unsigned char **text) {
    const unsigned char *p = *text;
    int more = *p < 0x80 ? 0 : *p < 0xE0 ? 1 : *p < 0xF0 ? 2 : 3;
    uint32_t scalar = more == 0 ? *p : *p & (0x3Fu >> more);
    for (int i = 1; i <= more; i++) scalar = scalar << 6 | (p[i] & 0x3F);
    *text = p + more + 1;
    return scalar;
}

static bool has_all(FT_Face face, const char *sample) {
    const unsigned char *text = (const unsigned char *)sample;
    while (*text) {
        FT_UInt index = FT_Get_Char_Index(face, next_scalar(&text));
        if (!index || !load(face, index) || !face->glyph->bitmap.width) return false;
    }
    return true;
}

static bool choose(FT_Face face, const char *samples, line *line) {
    if (face->charmap)
        for (const char *sample = samples; *sample; sample += strlen(sample) + 1)
            if (has_all(face, sample) && shape(face, sample, line)) return true;
    return first_glyphs(face, line);
}

static bool ink(FT_Face face, const line *line, box *box) {
    bool any = false;
    for (unsigned i = 0; i < line->count; i++) {
        if (!load(face, line->index[i])) continue;
        FT_GlyphSlot slot = face->glyph;
        if (!slot->bitmap.width || !slot->bitmap.rows) continue;
        double left = line->x[i] + slot->bitmap_left, top = -line->y[i] - slot->bitmap_top;
        double right = left + slot->bitmap.width, bottom = top + slot->bitmap.rows;
        box->left = any ? fmin(box->left, left) : left;
        box->top = any ? fmin(box->top, top) : top;
        box->right = any ? fmax(box->right, right) : right;
        box->bottom = any ? fmax(box->bottom, bottom) : bottom;
        any = true;
    }
    return any;
}

// A glyph's bitmap as a surface: its colours, or black of its coverage.
static cairo_surface_t *surface_of(const FT_Bitmap *bitmap) {
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_ARGB32, (int)bitmap->width, (int)bitmap->rows);
    unsigned char *rows = cairo_image_surface_get_data(surface);
    if (!rows) return surface;
    int stride = cairo_image_surface_get_stride(surface);
    for (unsigned y = 0; y < bitmap->rows; y++) {
        const unsigned char *from = bitmap->buffer + (ptrdiff_t)y * bitmap->pitch;
        for (unsigned x = 0; x < bitmap->width; x++) {
            uint32_t pixel;
            switch (bitmap->pixel_mode) {
            case FT_PIXEL_MODE_BGRA:
                pixel = (uint32_t)from[4 * x + 3] << 24 | (uint32_t)from[4 * x + 2] << 16 |
                        (uint32_t)from[4 * x + 1] << 8 | from[4 * x];
                break;
            case FT_PIXEL_MODE_MONO: pixel = from[x / 8] & 0x80 >> x % 8 ? 0xFF000000u : 0; break;
            case FT_PIXEL_MODE_GRAY: pixel = (uint32_t)from[x] << 24; break;
            default: pixel = 0;
            }
            memcpy(rows + (size_t)y * (size_t)stride + 4 * (size_t)x, &pixel, 4);
        }
    }
    cairo_surface_mark_dirty(surface);
    return surface;
}

static void paint(FT_Face face, const line *line, const box *box, double scale, cairo_t *context, int32_t width,
                  int32_t height) {
    cairo_translate(context, width / 2.0, height / 2.0);
    cairo_scale(context, scale, scale);
    cairo_translate(context, -(box->left + box->right) / 2, -(box->top + box->bottom) / 2);
    for (unsigned i = 0; i < line->count; i++) {
        if (!load(face, line->index[i]) || !face->glyph->bitmap.width || !face->glyph->bitmap.rows) continue;
        cairo_surface_t *glyph = surface_of(&face->glyph->bitmap);
        double x = line->x[i] + face->glyph->bitmap_left, y = -line->y[i] - face->glyph->bitmap_top;
        cairo_set_source_surface(context, glyph, scale == 1 ? round(x) : x, scale == 1 ? round(y) : y);
        cairo_paint(context);
        cairo_surface_destroy(glyph);
    }
}

static bool is_blank(const uint8_t *pixels, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (pixels[i] < 192) return false;
    return true;
}

static ctext_status draw(FT_Face face, const char *samples, int32_t width, int32_t height, uint8_t *pixels) {
    // Shapes and widths first, at the size of the picture; then as large as fits into 0.8 of it.
    double size = fmin(fmax(fmin(width, height), 32), 1024), scale = set_size(face, size);
    line line;
    box area;
    if (scale <= 0 || !choose(face, samples, &line) || !ink(face, &line, &area)) return CTEXT_DAMAGED;
    double fit = fmin(0.8 * width / (area.right - area.left), 0.8 * height / (area.bottom - area.top));
    if (!(fit > 0) || !isfinite(fit)) return CTEXT_DAMAGED;
    if (FT_IS_SCALABLE(face)) {
        if (set_size(face, floor(size * fit)) <= 0 || !choose(face, samples, &line) || !ink(face, &line, &area))
            return CTEXT_DAMAGED;
        // Whole sizes and hinted widths may exceed the picture after all, and very wide glyphs always do.
        fit = fmin(0.9 * width / (area.right - area.left), 0.9 * height / (area.bottom - area.top));
        fit = fmin(fit, 1);
    }
    cairo_surface_t *surface = ctext_surface(width, height);
    if (!surface) return CTEXT_MEMORY;
    cairo_t *context = cairo_create(surface);
    paint(face, &line, &area, fit, context, width, height);
    ctext_status status = ctext_finish(context, surface, width, height, pixels);
    if (status != CTEXT_OK) return status;
    return is_blank(pixels, 3 * (size_t)width * (size_t)height) ? CTEXT_DAMAGED : CTEXT_OK;
}

ctext_status ctext_draw_font(const void *bytes, size_t count, const char *samples, int32_t width, int32_t height,
                             uint8_t *pixels) {
    FT_Library library;
    if (FT_Init_FreeType(&library)) return CTEXT_MEMORY;
    FT_Face face;
    ctext_status status = CTEXT_DAMAGED;
    if (!FT_New_Memory_Face(library, bytes, (FT_Long)count, 0, &face)) {
        status = draw(face, samples, width, height, pixels);
        FT_Done_Face(face);
    }
    FT_Done_FreeType(library);
    return status;
}

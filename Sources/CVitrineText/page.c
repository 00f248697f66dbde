#include "drawing.h"
#include <pango/pangocairo.h>
#include <string.h>

// cairo's pixels are native 32-bit words: unused, red, green, blue from the highest byte down.
static void unpack(cairo_surface_t *surface, int32_t width, int32_t height, uint8_t *pixels) {
    const unsigned char *rows = cairo_image_surface_get_data(surface);
    int stride = cairo_image_surface_get_stride(surface);
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            uint32_t pixel;
            memcpy(&pixel, rows + (size_t)y * (size_t)stride + 4 * (size_t)x, 4);
            *pixels++ = (uint8_t)(pixel >> 16);
            *pixels++ = (uint8_t)(pixel >> 8);
            *pixels++ = (uint8_t)pixel;
        }
}

cairo_surface_t *ctext_surface(int32_t width, int32_t height) {
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    if (cairo_surface_status(surface) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(surface);
        return NULL;
    }
    cairo_t *context = cairo_create(surface);
    cairo_set_source_rgb(context, 1, 1, 1);
    cairo_paint(context);
    cairo_destroy(context);
    return surface;
}

ctext_status ctext_finish(cairo_t *context, cairo_surface_t *surface, int32_t width, int32_t height, uint8_t *pixels) {
    cairo_status_t status = cairo_status(context);
    cairo_destroy(context);
    cairo_surface_flush(surface);
    if (status == CAIRO_STATUS_SUCCESS) unpack(surface, width, height, pixels);
    cairo_surface_destroy(surface);
    return status == CAIRO_STATUS_SUCCESS ? CTEXT_OK : CTEXT_MEMORY;
}

static void quiet(const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data) {
    (void)domain, (void)level, (void)message, (void)data;
}

static void add(PangoAttrList *list, PangoAttribute *attribute, const ctext_run *run) {
    attribute->start_index = run->start;
    attribute->end_index = run->end;
    pango_attr_list_insert(list, attribute);
}

static PangoAttrList *attributes(const ctext_page *page) {
    PangoAttrList *list = pango_attr_list_new();
    for (size_t i = 0; i < page->run_count; i++) {
        const ctext_run *run = page->runs + i;
        add(list, pango_attr_foreground_new(run->red * 257, run->green * 257, run->blue * 257), run);
        if (run->bold) add(list, pango_attr_weight_new(PANGO_WEIGHT_BOLD), run);
        if (run->italic) add(list, pango_attr_style_new(PANGO_STYLE_ITALIC), run);
        if (run->monospaced) add(list, pango_attr_family_new("monospace"), run);
        if (run->scale > 0 && run->scale != 1) add(list, pango_attr_scale_new(run->scale), run);
    }
    return list;
}

// Grey levels at the edges of glyphs, and glyphs where the layout says rather than on whole pixels: at the size of a
// thumbnail, hinting would only distort them.
static void set_fonts(PangoContext *context) {
    cairo_font_options_t *fonts = cairo_font_options_create();
    cairo_font_options_set_antialias(fonts, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(fonts, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(fonts, CAIRO_HINT_METRICS_OFF);
    pango_cairo_context_set_font_options(context, fonts);
    cairo_font_options_destroy(fonts);
    pango_context_set_round_glyph_positions(context, FALSE);
}

static void draw(const ctext_page *page, cairo_t *context) {
    PangoLayout *layout = pango_cairo_create_layout(context);
    set_fonts(pango_layout_get_context(layout));
    pango_layout_context_changed(layout);
    PangoFontDescription *font = pango_font_description_from_string(page->monospaced ? "monospace" : "sans-serif");
    pango_font_description_set_absolute_size(font, page->font_size * PANGO_SCALE);
    pango_layout_set_font_description(layout, font);
    pango_font_description_free(font);
    if (page->monospaced) {
        pango_layout_set_width(layout, -1);
    } else {
        pango_layout_set_width(layout, (int)((page->width - 2 * page->margin) * PANGO_SCALE));
        pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
        // Lines below the page need no layout.
        pango_layout_set_height(layout, (int)((page->height - page->margin) * PANGO_SCALE));
        pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_NONE);
    }
    pango_layout_set_text(layout, page->text, (int)page->count);
    PangoAttrList *list = attributes(page);
    pango_layout_set_attributes(layout, list);
    pango_attr_list_unref(list);
    cairo_rectangle(context, 0, 0, page->width - page->margin / 2, page->height - page->margin);
    cairo_clip(context);
    cairo_move_to(context, page->margin, page->margin);
    cairo_set_source_rgb(context, 0.13, 0.13, 0.13);
    pango_cairo_show_layout(context, layout);
    g_object_unref(layout);
}

const char *ctext_version(void) { return pango_version_string(); }

void ctext_start(void) {
    g_log_set_default_handler(quiet, NULL);
    // Several writings and both families, so that pango has started its threads and read its lists.
    static const char text[] = "Ab \xD0\x96 \xD8\xB9 \xE3\x81\x82 \xF0\x9F\x99\x82";
    uint8_t pixels[32 * 32 * 3];
    for (int i = 0; i < 2; i++) {
        ctext_page page = {.text = text, .count = sizeof text - 1, .monospaced = i == 0, .width = 100, .height = 100,
                           .margin = 5, .font_size = 10};
        ctext_draw_page(&page, 32, 32, pixels);
    }
}

ctext_status ctext_draw_page(const ctext_page *page, int32_t width, int32_t height, uint8_t *pixels) {
    cairo_surface_t *surface = ctext_surface(width, height);
    if (!surface) return CTEXT_MEMORY;
    cairo_t *context = cairo_create(surface);
    cairo_scale(context, width / page->width, height / page->height);
    draw(page, context);
    return ctext_finish(context, surface, width, height, pixels);
}

// Where the base line is, as a part of the height: room above for capitals with accents, below for descenders.
static const double base_line = 0.74;

ctext_status ctext_draw_label(const ctext_label *label, int32_t width, int32_t height, uint8_t *pixels) {
    cairo_surface_t *surface = ctext_surface(width, height);
    if (!surface) return CTEXT_MEMORY;
    cairo_t *context = cairo_create(surface);
    PangoLayout *layout = pango_cairo_create_layout(context);
    set_fonts(pango_layout_get_context(layout));
    pango_layout_context_changed(layout);
    PangoFontDescription *font = pango_font_description_from_string("sans-serif");
    pango_font_description_set_absolute_size(font, label->font_size * PANGO_SCALE);
    if (label->bold) pango_font_description_set_weight(font, PANGO_WEIGHT_BOLD);
    pango_layout_set_font_description(layout, font);
    pango_font_description_free(font);
    pango_layout_set_width(layout, width * PANGO_SCALE);
    pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_MIDDLE);
    pango_layout_set_single_paragraph_mode(layout, TRUE);
    pango_layout_set_text(layout, label->text, (int)label->count);
    // Fonts of other scripts are taller than the first one: all lines stand on one base line.
    cairo_move_to(context, 0, height * base_line - (double)pango_layout_get_baseline(layout) / PANGO_SCALE);
    cairo_set_source_rgb(context, 0, 0, 0);
    pango_cairo_show_layout(context, layout);
    g_object_unref(layout);
    return ctext_finish(context, surface, width, height, pixels);
}

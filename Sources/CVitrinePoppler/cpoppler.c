#include "cpoppler.h"

#if !__has_include(<poppler.h>)
#error "poppler.h is missing. Install libpoppler-glib-dev (Debian and Ubuntu) or poppler (brew)."
#endif
#include <cairo.h>
#include <gio/gio.h>
#include <poppler.h>
#include <string.h>

struct cpoppler_document {
    PopplerDocument *poppler;
    bool needs_password;
};

static void ignore_log(const char *domain, GLogLevelFlags level, const char *text, void *user) {
    (void)domain; (void)level; (void)text; (void)user;
}

static GLogWriterOutput ignore_structured_log(GLogLevelFlags level, const GLogField *fields, gsize count,
                                              gpointer user) {
    (void)level; (void)fields; (void)count; (void)user;
    return G_LOG_WRITER_HANDLED;
}

// Passwords and titles are converted with tables that the C library loads like programs and drops when nobody uses
// them. Without them poppler crashes: somebody has to use them for ever.
static void keep_encodings(void) {
    static const char *const from[] = {"ISO-8859-1", "UTF-16BE", "UTF-16LE", "UTF-16"};
    for (size_t i = 0; i < G_N_ELEMENTS(from); i++) {
        (void)g_iconv_open("UTF-8", from[i]);
        (void)g_iconv_open(from[i], "UTF-8");
    }
}

void cpoppler_start(void) {
    keep_encodings();
    g_log_set_writer_func(ignore_structured_log, NULL, NULL);
    g_log_set_default_handler(ignore_log, NULL);
}

static PopplerDocument *open_with(GBytes *data, const char *password, GError **error) {
    if (!password) return poppler_document_new_from_bytes(data, NULL, error);
    // With a wrong password poppler 22.12 crashes on bytes and on data, but not on a stream.
    GInputStream *stream = g_memory_input_stream_new_from_bytes(data);
    PopplerDocument *document =
        poppler_document_new_from_stream(stream, (goffset)g_bytes_get_size(data), password, NULL, error);
    g_object_unref(stream);
    return document;
}

cpoppler_status cpoppler_open(const void *bytes, size_t count, const char *password, cpoppler_document **document) {
    GBytes *data = g_bytes_new_static(bytes, count);
    PopplerDocument *poppler = NULL;
    bool encrypted = false;
    for (int attempt = 0; !poppler && attempt < (password ? 2 : 1); attempt++) {
        if (attempt && !encrypted) break;
        GError *error = NULL;
        poppler = open_with(data, attempt ? password : NULL, &error);
        if (!poppler) encrypted = error && g_error_matches(error, POPPLER_ERROR, POPPLER_ERROR_ENCRYPTED);
        g_clear_error(&error);
    }
    g_bytes_unref(data);
    if (!poppler) return encrypted ? CPOPPLER_ENCRYPTED : CPOPPLER_DAMAGED;
    *document = g_new(cpoppler_document, 1);
    **document = (cpoppler_document){poppler, encrypted};
    return CPOPPLER_OK;
}

bool cpoppler_needs_password(cpoppler_document *document) { return document->needs_password; }

void cpoppler_close(cpoppler_document *document) {
    if (!document) return;
    g_object_unref(document->poppler);
    g_free(document);
}

int32_t cpoppler_page_count(cpoppler_document *document) {
    return poppler_document_get_n_pages(document->poppler);
}

static PopplerPage *page_at(cpoppler_document *document, int32_t index) {
    if (index < 0 || index >= cpoppler_page_count(document)) return NULL;
    return poppler_document_get_page(document->poppler, index);
}

cpoppler_status cpoppler_page_size(cpoppler_document *document, int32_t index, double *width, double *height) {
    PopplerPage *page = page_at(document, index);
    if (!page) return CPOPPLER_NO_PAGE;
    poppler_page_get_size(page, width, height);
    g_object_unref(page);
    return CPOPPLER_OK;
}

bool cpoppler_title(cpoppler_document *document, char *text, size_t size) {
    char *title = poppler_document_get_title(document->poppler);
    if (!title) return false;
    g_strlcpy(text, title, size);
    g_free(title);
    return text[0] != 0;
}

static uint8_t multiplied(unsigned a, unsigned b) { return (uint8_t)((a * b + 127) / 255); }

static uint8_t sum(unsigned a, unsigned b) { return a + b > 255 ? 255 : (uint8_t)(a + b); }

// Puts paper behind a row of cairo's pixels: native 32-bit words of alpha, red, green and blue from the highest byte
// down, with alpha multiplied in. A page is a group of its own, which begins transparent (ISO 32000-1, 11.4.7): its
// colours are blended with each other, but not with the paper. cairo would not paint on a surface on which something
// has failed.
static void unpack(const unsigned char *row, const cpoppler_drawing *drawing, uint8_t *to) {
    bool opaque = drawing->alpha == 255;
    uint8_t paper[4] = {multiplied(drawing->red, drawing->alpha), multiplied(drawing->green, drawing->alpha),
                        multiplied(drawing->blue, drawing->alpha), drawing->alpha};
    for (int32_t x = 0; x < drawing->width; x++) {
        uint32_t pixel;
        memcpy(&pixel, row + 4 * (size_t)x, 4);
        unsigned free = 255 - (pixel >> 24);
        uint8_t *out = to + (opaque ? 3 : 4) * (size_t)x;
        out[0] = sum(pixel >> 16 & 255, multiplied(paper[0], free));
        out[1] = sum(pixel >> 8 & 255, multiplied(paper[1], free));
        out[2] = sum(pixel & 255, multiplied(paper[2], free));
        if (!opaque) out[3] = sum(pixel >> 24, multiplied(paper[3], free));
    }
}

// Grey levels at the edges of glyphs, and glyphs where the page says rather than on whole pixels: at the size of a
// thumbnail, hinting would only distort them.
static void set_fonts(cairo_t *context) {
    cairo_font_options_t *fonts = cairo_font_options_create();
    cairo_font_options_set_antialias(fonts, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(fonts, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(fonts, CAIRO_HINT_METRICS_OFF);
    cairo_set_font_options(context, fonts);
    cairo_font_options_destroy(fonts);
}

static cairo_status_t draw(PopplerPage *page, const cpoppler_drawing *drawing, cairo_surface_t *surface) {
    double width = 0, height = 0;
    poppler_page_get_size(page, &width, &height);
    cairo_t *context = cairo_create(surface);
    set_fonts(context);
    cairo_scale(context, drawing->width / width, drawing->height / height);
    poppler_page_render(page, context);
    cairo_status_t status = cairo_status(context);
    cairo_destroy(context);
    return status;
}

// Whether all pixels are equal.
static bool is_blank(const unsigned char *rows, int stride, const cpoppler_drawing *drawing) {
    size_t length = 4 * (size_t)drawing->width;
    for (int32_t y = 0; y < drawing->height; y++) {
        const unsigned char *row = rows + (size_t)y * (size_t)stride;
        if (memcmp(row, rows, 4) || memcmp(row, row + 4, length - 4)) return false;
    }
    return true;
}

cpoppler_status cpoppler_draw(cpoppler_document *document, const cpoppler_drawing *drawing, uint8_t *pixels) {
    PopplerPage *page = page_at(document, drawing->page);
    if (!page) return CPOPPLER_NO_PAGE;
    size_t length = (size_t)drawing->width * (drawing->alpha == 255 ? 3 : 4);
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, drawing->width, drawing->height);
    cairo_status_t status = cairo_surface_status(surface);
    bool drawn = status == CAIRO_STATUS_SUCCESS;
    // What a damaged page leaves behind is drawn as far as it went, but not without memory. A size that is too large
    // for cairo is that of something on the page, behind which cairo draws nothing.
    if (drawn) {
        status = draw(page, drawing, surface);
        drawn = status != CAIRO_STATUS_NO_MEMORY;
    }
    g_object_unref(page);
    cairo_surface_flush(surface);
    const unsigned char *rows = cairo_image_surface_get_data(surface);
    int stride = cairo_image_surface_get_stride(surface);
    drawn = drawn && rows;
    bool blank = drawn && status != CAIRO_STATUS_SUCCESS && is_blank(rows, stride, drawing);
    for (int32_t y = 0; drawn && y < drawing->height; y++)
        unpack(rows + (size_t)y * (size_t)stride, drawing, pixels + (size_t)y * length);
    cairo_surface_destroy(surface);
    return blank ? CPOPPLER_UNDRAWN : drawn ? CPOPPLER_OK : CPOPPLER_MEMORY;
}

const char *cpoppler_version(void) { return poppler_get_version(); }

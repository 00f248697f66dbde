#include "cpng.h"

#if !__has_include(<png.h>)
#error "png.h is missing. Install libpng-dev (Debian and Ubuntu) or libpng (brew)."
#endif
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

// Everything that must be freed after a longjmp lives here, outside the frame that setjmp returns to.
typedef struct {
    jmp_buf jump;
    uint8_t *bytes;
    size_t count;
    size_t capacity;
    png_bytepp rows;
    char *message;
    size_t message_size;
} state;

static void on_error(png_structp png, png_const_charp text) {
    state *s = png_get_error_ptr(png);
    strncpy(s->message, text, s->message_size - 1);
    longjmp(s->jump, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static void on_write(png_structp png, png_bytep data, size_t count) {
    state *s = png_get_io_ptr(png);
    if (count > s->capacity - s->count) {
        size_t wanted = s->capacity < 4096 ? 4096 : s->capacity;
        while (count > wanted - s->count) {
            if (wanted > SIZE_MAX / 2) png_error(png, "the file is too large");
            wanted *= 2;
        }
        uint8_t *grown = realloc(s->bytes, wanted);
        if (!grown) png_error(png, "out of memory");
        s->bytes = grown;
        s->capacity = wanted;
    }
    memcpy(s->bytes + s->count, data, count);
    s->count += count;
}

static void on_flush(png_structp png) { (void)png; }

static void write_header(png_structp png, png_infop info, const cpng_input *in) {
    static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_RGB_ALPHA};
    int type = in->palette ? PNG_COLOR_TYPE_PALETTE : types[in->channels - 1];
    int depth = 8;
    if (in->palette) depth = in->palette_count <= 2 ? 1 : in->palette_count <= 4 ? 2 : in->palette_count <= 16 ? 4 : 8;
    png_set_IHDR(png, info, in->width, in->height, depth, type,
                 in->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (in->palette) {
        png_color colors[256];
        png_byte alphas[256];
        for (int i = 0; i < in->palette_count; i++) {
            colors[i].red = in->palette[i * 4];
            colors[i].green = in->palette[i * 4 + 1];
            colors[i].blue = in->palette[i * 4 + 2];
            alphas[i] = in->palette[i * 4 + 3];
        }
        png_set_PLTE(png, info, colors, in->palette_count);
        if (in->palette_transparent_count > 0) {
            png_set_tRNS(png, info, alphas, in->palette_transparent_count, NULL);
        }
    }
    png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
#ifdef PNG_eXIf_SUPPORTED
    if (in->exif) png_set_eXIf_1(png, info, (png_uint_32)in->exif_count, (png_bytep)in->exif);
#endif
    if (in->xmp) {
        png_text text;
        memset(&text, 0, sizeof text);
        text.compression = PNG_ITXT_COMPRESSION_NONE;
        text.key = "XML:com.adobe.xmp";
        text.text = (png_charp)in->xmp;
        text.itxt_length = in->xmp_count;
        png_set_text(png, info, &text, 1);
    }
    png_write_info(png, info);
    // One palette index a byte comes in, as many as the depth allows go out.
    if (depth < 8) png_set_packing(png);
}

static void encode(png_structp png, png_infop info, const cpng_input *in, state *s) {
    png_set_write_fn(png, s, on_write, on_flush);
    png_set_compression_level(png, in->level);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, in->palette ? PNG_FILTER_NONE : PNG_ALL_FILTERS);
    write_header(png, info, in);
    if (in->interlaced) {
        s->rows = calloc(in->height, sizeof *s->rows);
        if (!s->rows) png_error(png, "out of memory");
        for (uint32_t y = 0; y < in->height; y++) s->rows[y] = (png_bytep)in->pixels + y * in->bytes_per_row;
        png_write_image(png, s->rows);
    } else {
        for (uint32_t y = 0; y < in->height; y++) png_write_row(png, in->pixels + y * in->bytes_per_row);
    }
    png_write_end(png, info);
}

int cpng_encode(const cpng_input *input, cpng_output *output) {
    memset(output, 0, sizeof *output);
    if (input->channels < 1 || input->channels > 4 || input->palette_count > 256) return -1;
    state *s = calloc(1, sizeof *s);
    if (!s) return -1;
    s->message = output->message;
    s->message_size = sizeof output->message;
    png_structp png = NULL;
    png_infop info = NULL;
    volatile int failed = 1;
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, s, NULL, on_warning);
    if (png) info = png_create_info_struct(png);
    if (info) {
        png_set_error_fn(png, s, on_error, on_warning);
        png_structp volatile kept_png = png;
        png_infop volatile kept_info = info;
        if (setjmp(s->jump) == 0) {
            encode(kept_png, kept_info, input, s);
            failed = 0;
        } else {
            failed = 1;
        }
        png = kept_png;
        info = kept_info;
    }
    if (png) png_destroy_write_struct(&png, &info);
    free(s->rows);
    if (failed) {
        free(s->bytes);
    } else {
        output->bytes = s->bytes;
        output->count = s->count;
    }
    free(s);
    return failed ? -1 : 0;
}

void cpng_free(void *bytes) { free(bytes); }

const char *cpng_version(void) { return png_get_libpng_ver(NULL); }

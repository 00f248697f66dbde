#include "cpng.h"

#if !__has_include(<png.h>)
#error "png.h is missing. Install libpng-dev (Debian and Ubuntu) or libpng (brew)."
#endif
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

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

static void on_count(png_structp png, png_bytep data, size_t count) {
    (void)data;
    state *s = png_get_io_ptr(png);
    s->count += count;
}

// How rows are filtered and compressed.
typedef struct {
    int filters;
    int level;
    int strategy;
} method;

// Photos: one filter, and runs of one byte only, an eighth of the time of a search for repeated bytes.
static const method photo = {PNG_FILTER_PAETH, 6, Z_RLE};
// Drawings and text: patterns repeat, which filters would hide.
static const method drawing = {PNG_FILTER_NONE, 5, Z_DEFAULT_STRATEGY};
// All else: the filter of each row, and the search. zlib's default level 6 saves 1 to 6 % more in twice the time.
static const method mixture = {PNG_ALL_FILTERS, 5, Z_FILTERED};

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

static void begin(png_structp png, png_infop info, const cpng_input *in, method how) {
    png_set_compression_level(png, how.level);
    png_set_compression_strategy(png, how.strategy);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, how.filters);
    write_header(png, info, in);
}

static void encode(png_structp png, png_infop info, const cpng_input *in, method how, state *s) {
    png_set_write_fn(png, s, on_write, on_flush);
    begin(png, info, in, how);
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

// The sample: bands of rows, a quarter of all.
enum { band_rows = 16, band_distance = 64 };

static uint32_t sample_rows(uint32_t height) {
    uint32_t rest = height % band_distance;
    return height / band_distance * band_rows + (rest < band_rows ? rest : band_rows);
}

// Counts the bytes of the sample.
static void encode_sample(png_structp png, png_infop info, const cpng_input *in, method how, state *s) {
    png_set_write_fn(png, s, on_count, on_flush);
    cpng_input sample = *in;
    sample.height = sample_rows(in->height);
    sample.interlaced = 0;
    sample.exif = NULL;
    sample.xmp = NULL;
    begin(png, info, &sample, how);
    for (uint32_t y = 0; y < in->height; y++) {
        if (y % band_distance < band_rows) png_write_row(png, in->pixels + y * in->bytes_per_row);
    }
    png_write_end(png, info);
}

typedef void (*encoding)(png_structp, png_infop, const cpng_input *, method, state *);

// Returns whether it has succeeded. What it has written or counted is in the state.
static int run(encoding body, const cpng_input *input, method how, state *s) {
    png_infop info = NULL;
    volatile int done = 0;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, s, NULL, on_warning);
    if (png) info = png_create_info_struct(png);
    if (info) {
        png_set_error_fn(png, s, on_error, on_warning);
        png_structp volatile kept_png = png;
        png_infop volatile kept_info = info;
        s->count = 0;
        if (setjmp(s->jump) == 0) {
            body(kept_png, kept_info, input, how, s);
            done = 1;
        } else {
            done = 0;
        }
        png = kept_png;
        info = kept_info;
    }
    if (png) png_destroy_write_struct(&png, &info);
    return done;
}

// The bytes of the sample; SIZE_MAX if it cannot be encoded.
static size_t sample_size(const cpng_input *input, method how, state *s) {
    return run(encode_sample, input, how, s) ? s->count : SIZE_MAX;
}

static method chosen(const cpng_input *input, state *s) {
    // Differences of palette indices mean nothing.
    if (input->palette) return drawing;
    // What the search gains shows at this level as well, in less time.
    method quicker[] = {drawing, mixture};
    quicker[0].level = quicker[1].level = 4;
    size_t as_drawing = sample_size(input, quicker[0], s), as_mixture = sample_size(input, quicker[1], s);
    size_t searched = as_drawing < as_mixture ? as_drawing : as_mixture;
    size_t as_photo = sample_size(input, photo, s);
    if (as_photo <= searched + searched / 20) return photo;
    return as_drawing <= as_mixture ? drawing : mixture;
}

int cpng_encode(const cpng_input *input, cpng_output *output) {
    memset(output, 0, sizeof *output);
    if (input->channels < 1 || input->channels > 4 || input->palette_count > 256) return -1;
    state *s = calloc(1, sizeof *s);
    if (!s) return -1;
    s->message = output->message;
    s->message_size = sizeof output->message;
    method how = chosen(input, s);
    memset(output->message, 0, sizeof output->message);
    int done = run(encode, input, how, s);
    free(s->rows);
    if (done) {
        output->bytes = s->bytes;
        output->count = s->count;
    } else {
        free(s->bytes);
    }
    free(s);
    return done ? 0 : -1;
}

void cpng_free(void *bytes) { free(bytes); }

const char *cpng_version(void) { return png_get_libpng_ver(NULL); }

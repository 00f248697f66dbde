#include "cpixels.h"
#include "ctiff.h"

#if !__has_include(<tiffio.h>)
#error "tiffio.h is missing. Install libtiff-dev (Debian and Ubuntu) or libtiff (brew)."
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

// How much finer than the target a reduced picture must be, so that the final scaling still has something to filter.
#define MARGIN 1.5

// MARK: Input

typedef struct {
    const uint8_t *bytes;
    uint64_t count, at;
    bool hit_end;
} input;

// libtiff reports errors by a function of the process. This library is meant for one thread.
static char message[300];

static void note_error(const char *module, const char *format, va_list values) {
    (void)module;
    if (!message[0]) vsnprintf(message, sizeof message, format, values);
}

static tmsize_t read_bytes(thandle_t handle, void *to, tmsize_t count) {
    input *in = (input *)handle;
    uint64_t left = in->at < in->count ? in->count - in->at : 0;
    if (count < 0) return -1;
    if ((uint64_t)count > left) {
        in->hit_end = true;
        count = (tmsize_t)left;
    }
    memcpy(to, in->bytes + in->at, (size_t)count);
    in->at += (uint64_t)count;
    return count;
}

static tmsize_t write_bytes(thandle_t handle, void *from, tmsize_t count) {
    (void)handle; (void)from; (void)count;
    return -1;
}

static toff_t seek(thandle_t handle, toff_t offset, int from) {
    input *in = (input *)handle;
    in->at = from == SEEK_CUR ? in->at + offset : from == SEEK_END ? in->count + offset : offset;
    if (in->at > in->count) in->at = in->count;
    return in->at;
}

static int close_input(thandle_t handle) { (void)handle; return 0; }
static toff_t size_of(thandle_t handle) { return ((input *)handle)->count; }

// MARK: What a page holds

typedef struct {
    uint32_t width, height;
    uint16_t bits, samples, photometric, planes, compression;
    int colors, alpha; // colour channels, and the sample that is alpha, or -1
    bool has_photometric, is_tiled, is_premultiplied, is_cielab, needs_rgba;
} page;

// Which sample is alpha: TIFF 6.0 §18.
static void find_alpha(TIFF *tiff, page *p) {
    uint16_t count = 0, *kinds = NULL;
    p->alpha = -1;
    bool has_field = TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) && count;
    for (int i = 0; has_field && i < count && p->colors + i < p->samples; i++) {
        if (kinds[i] != EXTRASAMPLE_ASSOCALPHA && kinds[i] != EXTRASAMPLE_UNASSALPHA) continue;
        p->alpha = p->colors + i;
        p->is_premultiplied = kinds[i] == EXTRASAMPLE_ASSOCALPHA;
        return;
    }
    // Without the field, one sample more than colours is what other programs write, and read, as alpha.
    if (!has_field && p->samples == p->colors + 1) p->alpha = p->colors;
}

// Reads the fields of the page. Returns false for a variety that libvips reads right.
static bool is_odd(TIFF *tiff, page *p) {
    memset(p, 0, sizeof *p);
    uint16_t format = SAMPLEFORMAT_UINT;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &p->width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &p->height);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &p->bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &p->samples);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &p->planes);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &p->compression);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &format);
    p->has_photometric = TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &p->photometric);
    p->is_tiled = TIFFIsTiled(tiff);
    // Facsimile is black on white; of the others the number of samples tells, as libtiff takes it.
    bool is_fax = (p->compression >= COMPRESSION_CCITTRLE && p->compression <= COMPRESSION_CCITTFAX4) ||
        p->compression == COMPRESSION_CCITTRLEW;
    if (!p->has_photometric)
        p->photometric = p->samples >= 3 ? PHOTOMETRIC_RGB : is_fax ? PHOTOMETRIC_MINISWHITE : PHOTOMETRIC_MINISBLACK;
    switch (p->photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK: p->colors = 1; break;
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_YCBCR:
    case PHOTOMETRIC_CIELAB:
    case PHOTOMETRIC_ICCLAB: p->colors = 3; break;
    case PHOTOMETRIC_SEPARATED: p->colors = 4; break;
    default: return false;
    }
    bool is_signed = format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID;
    if (is_signed && p->photometric != PHOTOMETRIC_CIELAB) return false;
    find_alpha(tiff, p);
    p->is_cielab = p->photometric == PHOTOMETRIC_CIELAB || p->photometric == PHOTOMETRIC_ICCLAB;
    if (p->photometric == PHOTOMETRIC_YCBCR) {
        // libvips has libtiff turn JPEG into RGB, and knows neither of the others.
        bool is_jpeg = p->compression == COMPRESSION_JPEG && p->planes == PLANARCONFIG_CONTIG;
        p->needs_rgba = !is_jpeg;
        return p->needs_rgba;
    }
    if (p->compression == COMPRESSION_OJPEG) return p->needs_rgba = true;
    bool has_odd_bits = p->bits < 8 ? p->samples > 1 || (p->bits & (p->bits - 1)) : p->bits != 8 && p->bits < 16;
    bool has_odd_samples = p->samples > p->colors + 1 || (p->samples == p->colors + 1 && p->alpha < 0);
    return !p->has_photometric || has_odd_bits || has_odd_samples || p->photometric == PHOTOMETRIC_ICCLAB ||
        (p->photometric == PHOTOMETRIC_CIELAB && p->bits == 8) ||
        (p->is_tiled && p->planes == PLANARCONFIG_SEPARATE && p->samples > 1);
}

// MARK: Colour

static uint8_t byte(double value) { return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5); }

static double encoded(double linear) {
    if (linear <= 0) return 0;
    return 255 * (linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055);
}

static double unlab(double t) { return t > 6.0 / 29 ? t * t * t : 3 * (6.0 / 29) * (6.0 / 29) * (t - 4.0 / 29); }

// CIELab to sRGB, relative to the white of the file: white becomes white (CIE 15; IEC 61966-2-1).
static void lab_to_rgb(double l, double a, double b, uint8_t *to) {
    double y = (l + 16) / 116;
    double X = 0.95047 * unlab(y + a / 500), Y = unlab(y), Z = 1.08883 * unlab(y - b / 200);
    to[0] = byte(encoded(3.2404542 * X - 1.5371385 * Y - 0.4985314 * Z));
    to[1] = byte(encoded(-0.9692660 * X + 1.8760108 * Y + 0.0415560 * Z));
    to[2] = byte(encoded(0.0556434 * X - 0.2040259 * Y + 1.0572252 * Z));
}

// MARK: Reduction

static int factor_for(uint32_t width, uint32_t height, const ctiff_request *q) {
    if (q->width <= 0 || q->height <= 0) return 1;
    double f = fmin((double)width / (double)q->width, (double)height / (double)q->height) / MARGIN;
    return f < 2 ? 1 : (int)fmin(f, 1 << 20);
}

// The means of blocks become the pixels of `out`, whose meaning of alpha is set before.
static bool start(cpixels_means *means, const page *p, const ctiff_request *q, ctiff_picture *out, int colors) {
    int factor = factor_for(p->width, p->height, q);
    bool weighs = factor > 1 && out->alpha == CTIFF_STRAIGHT;
    out->channels = colors + (out->alpha != CTIFF_OPAQUE);
    bool is_started = cpixels_means_start(means, p->width, p->height, (uint32_t)factor, out->channels, weighs);
    out->pixels = means->pixels;
    out->count = means->count;
    out->width = (int32_t)means->columns;
    out->height = (int32_t)means->rows;
    out->extent_width = (double)p->width / factor;
    out->extent_height = (double)p->height / factor;
    if (weighs) out->alpha = CTIFF_PREMULTIPLIED;
    return is_started;
}

// MARK: Samples as they are in the file

// `count` samples of any number of bits up to 16 from the highest bit on; those of 16 are in the order of the machine.
static uint32_t sample(const uint8_t *row, size_t index, int bits) {
    if (bits == 8) return row[index];
    if (bits == 16) {
        uint16_t value;
        memcpy(&value, row + 2 * index, 2);
        return value;
    }
    uint32_t value = 0;
    for (size_t at = index * (size_t)bits, end = at + (size_t)bits; at < end; at++)
        value = value << 1 | (row[at >> 3] >> (7 - (at & 7)) & 1);
    return value;
}

// One pixel: `values` are the samples of colour, and that of alpha.
static void convert(const page *p, const uint32_t *values, uint8_t *to) {
    uint32_t most = (1u << p->bits) - 1;
    if (p->is_cielab) {
        bool is_icc = p->photometric == PHOTOMETRIC_ICCLAB;
        double scale = 1 << (p->bits - 8), l = values[0] * 100.0 / (p->bits == 16 && is_icc ? 65280 : most), ab[2];
        for (int i = 0; i < 2; i++) {
            double value = values[i + 1] / scale;
            // Signed, or with 128 for nothing: TIFF 6.0 §23; Adobe Photoshop TIFF technical notes.
            ab[i] = is_icc ? value - 128 : value >= 128 ? value - 256 : value;
        }
        lab_to_rgb(l, ab[0], ab[1], to);
    } else {
        for (int i = 0; i < p->colors; i++) to[i] = (uint8_t)((values[i] * 255u + most / 2) / most);
        if (p->photometric == PHOTOMETRIC_MINISWHITE) to[0] = (uint8_t)(255 - to[0]);
    }
    if (p->alpha >= 0) to[p->colors] = (uint8_t)((values[p->colors] * 255u + most / 2) / most);
}

// A row of strips or tiles of one plane after the other, as high as `rows`.
typedef struct {
    uint8_t *bytes;
    uint32_t rows, first; // of the picture
    uint32_t cell_width, across; // pixels and number of the cells side by side
    tmsize_t cell, line; // bytes of one cell, and of one line in it
    int planes;
} band;

static bool open_band(TIFF *tiff, const page *p, const ctiff_request *q, ctiff_picture *out, band *b) {
    *b = (band){.planes = p->planes == PLANARCONFIG_SEPARATE ? p->samples : 1, .across = 1, .cell_width = p->width};
    uint32_t rows = 0;
    if (p->is_tiled) {
        TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &b->cell_width);
        TIFFGetField(tiff, TIFFTAG_TILELENGTH, &rows);
        if (!b->cell_width) return false;
        b->across = (p->width - 1) / b->cell_width + 1;
        b->line = TIFFTileRowSize(tiff);
        b->cell = TIFFTileSize(tiff);
    } else {
        TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
        if (rows > p->height) rows = p->height;
        b->line = TIFFScanlineSize(tiff);
        // Strips that hold all samples are read line by line.
        if (b->planes == 1) rows = 1;
        b->cell = (tmsize_t)rows * b->line;
    }
    b->rows = rows;
    size_t samples = b->planes > 1 ? 1 : p->samples;
    if (!rows || b->line <= 0 || b->cell <= 0 || b->cell / b->line < rows ||
        (uint64_t)b->line * 8 < (uint64_t)b->cell_width * samples * p->bits)
        return false;
    double bytes = (double)b->cell * b->across * b->planes;
    if (bytes > (double)q->max_memory / 2) {
        out->actual = (int64_t)fmin(bytes, 1e18);
        return false;
    }
    return (b->bytes = calloc((size_t)b->cell * b->across, (size_t)b->planes)) != NULL;
}

// Fills the band from row `y` on.
static bool read_band(TIFF *tiff, const page *p, band *b, uint32_t y) {
    b->first = y;
    bool is_whole = true;
    // What is missing is black, not the rows before.
    memset(b->bytes, 0, (size_t)b->cell * b->across * (size_t)b->planes);
    for (int plane = 0; plane < b->planes; plane++) {
        for (uint32_t i = 0; i < b->across; i++) {
            uint8_t *to = b->bytes + ((size_t)plane * b->across + i) * (size_t)b->cell;
            uint16_t sample = (uint16_t)plane;
            if (p->is_tiled) {
                uint32_t tile = TIFFComputeTile(tiff, i * b->cell_width, y, 0, sample);
                is_whole = TIFFReadEncodedTile(tiff, tile, to, b->cell) >= 0 && is_whole;
            } else if (b->planes == 1) {
                is_whole = TIFFReadScanline(tiff, to, y, sample) >= 0 && is_whole;
            } else {
                uint32_t strip = TIFFComputeStrip(tiff, y, sample);
                is_whole = TIFFReadEncodedStrip(tiff, strip, to, b->cell) >= 0 && is_whole;
            }
        }
    }
    return is_whole;
}

static void convert_row(const page *p, const band *b, uint32_t y, uint8_t *to) {
    int wanted[5], count = 0;
    for (int i = 0; i < p->colors; i++) wanted[count++] = i;
    if (p->alpha >= 0) wanted[count++] = p->alpha;
    size_t samples = b->planes > 1 ? 1 : p->samples;
    for (uint32_t x = 0; x < p->width; x++, to += count) {
        uint32_t values[5] = {0};
        const uint8_t *line = b->bytes + (size_t)(x / b->cell_width) * (size_t)b->cell;
        line += (size_t)(y - b->first) * (size_t)b->line;
        for (int i = 0; i < count; i++) {
            bool is_apart = b->planes > 1;
            const uint8_t *from = is_apart ? line + (size_t)wanted[i] * b->across * (size_t)b->cell : line;
            values[i] = sample(from, (x % b->cell_width) * samples + (is_apart ? 0 : (size_t)wanted[i]), p->bits);
        }
        convert(p, values, to);
    }
}

static ctiff_status failed(const input *in, char *error, size_t size, const char *text) {
    if (!text) text = message[0] ? message : "its samples cannot be read";
    if (error && size) snprintf(error, size, "%s", text);
    return in->hit_end || strstr(text, "hort") || strstr(text, "nd of file") ? CTIFF_TRUNCATED : CTIFF_CORRUPT;
}

static ctiff_status decode_samples(
    TIFF *tiff, const page *p, const ctiff_request *q, ctiff_picture *out, const input *in, char *error, size_t size
) {
    if (p->bits < 1 || p->bits > 16 || p->samples < p->colors || (p->is_cielab && p->bits < 8) || p->samples > 64) {
        if (error && size) snprintf(error, size, "TIFF with %d samples of %d bits is not read", p->samples, p->bits);
        return CTIFF_UNSUPPORTED;
    }
    out->model = p->colors == 1 ? CTIFF_GRAY : p->colors == 4 ? CTIFF_CMYK : CTIFF_RGB;
    page own = *p;
    // Colours of print with alpha have no model here; the ink is shown.
    if (own.colors == 4) own.alpha = -1;
    out->alpha = own.alpha < 0 ? CTIFF_OPAQUE : own.is_premultiplied ? CTIFF_PREMULTIPLIED : CTIFF_STRAIGHT;
    // Colours of Lab cannot be multiplied by anything before they are RGB.
    if (own.is_cielab && own.alpha >= 0) out->alpha = CTIFF_STRAIGHT;
    out->is_srgb = own.is_cielab;
    band b;
    if (!open_band(tiff, &own, q, out, &b)) return out->actual ? CTIFF_MEMORY : failed(in, error, size, NULL);
    cpixels_means means;
    ctiff_status status = CTIFF_OK;
    uint8_t *row = calloc(own.width, 5);
    if (!start(&means, &own, q, out, own.colors) || !row) status = CTIFF_MEMORY;
    for (uint32_t y = 0; !status && y < own.height; y++) {
        if ((y == 0 || y - b.first >= b.rows) && !read_band(tiff, &own, &b, y)) {
            if (!q->allow_partial) status = failed(in, error, size, NULL);
            out->is_partial = true;
        }
        if (status) break;
        convert_row(&own, &b, y, row);
        cpixels_means_add(&means, row);
    }
    cpixels_means_finish(&means);
    free(row);
    free(b.bytes);
    return status;
}

// MARK: Samples that libtiff converts

// Subsampled chroma and JPEG of the first kind, by libtiff's own conversion to RGB with alpha multiplied in.
static ctiff_status decode_rgba(
    TIFF *tiff, const page *p, const ctiff_request *q, ctiff_picture *out, const input *in, char *error, size_t size
) {
    char text[1024] = "";
    TIFFRGBAImage image;
    int64_t memory = (int64_t)p->width * p->height * 4;
    if (memory > q->max_memory / 2) {
        out->actual = memory;
        return CTIFF_MEMORY;
    }
    if (!TIFFRGBAImageOK(tiff, text) || !TIFFRGBAImageBegin(&image, tiff, !q->allow_partial, text)) {
        failed(in, error, size, text[0] ? text : NULL);
        return CTIFF_UNSUPPORTED;
    }
    // As stored: what turns the picture stands in its header.
    image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;
    out->model = CTIFF_RGB;
    out->alpha = p->alpha >= 0 && image.alpha ? CTIFF_PREMULTIPLIED : CTIFF_OPAQUE;
    uint32_t *raster = calloc((size_t)p->width, (size_t)p->height * 4);
    uint8_t *row = calloc(p->width, 4);
    cpixels_means means;
    ctiff_status status = CTIFF_OK;
    if (!start(&means, p, q, out, 3) || !raster || !row) status = CTIFF_MEMORY;
    if (!status && (!TIFFRGBAImageGet(&image, raster, p->width, p->height) || message[0])) {
        if (!q->allow_partial) status = failed(in, error, size, NULL);
        out->is_partial = true;
    }
    for (uint32_t y = 0; !status && y < p->height; y++) {
        uint8_t *to = row;
        for (uint32_t x = 0; x < p->width; x++, to += out->channels) {
            uint32_t pixel = raster[(size_t)y * p->width + x];
            to[0] = (uint8_t)TIFFGetR(pixel);
            to[1] = (uint8_t)TIFFGetG(pixel);
            to[2] = (uint8_t)TIFFGetB(pixel);
            if (out->channels == 4) to[3] = (uint8_t)TIFFGetA(pixel);
        }
        cpixels_means_add(&means, row);
    }
    cpixels_means_finish(&means);
    free(row);
    free(raster);
    TIFFRGBAImageEnd(&image);
    return status;
}

// MARK: Decoding

static ctiff_status decode(
    TIFF *tiff, const ctiff_request *q, ctiff_picture *out, const input *in, char *error, size_t size
) {
    page p;
    if (q->page > 0xFFFF || !TIFFSetDirectory(tiff, (tdir_t)q->page)) return CTIFF_NO_PAGE;
    if (!is_odd(tiff, &p)) return CTIFF_ORDINARY;
    if (!p.width || !p.height) return failed(in, error, size, "a side has no pixels");
    int64_t side = p.width > p.height ? p.width : p.height, pixels = (int64_t)p.width * p.height;
    if (side > q->max_side || pixels > q->max_pixels) {
        out->actual = side > q->max_side ? side : pixels;
        return side > q->max_side ? CTIFF_SIDE : CTIFF_PIXELS;
    }
    // What is unusual in the fields of the page is no error.
    message[0] = 0;
    return (p.needs_rgba ? decode_rgba : decode_samples)(tiff, &p, q, out, in, error, size);
}

ctiff_status ctiff_decode(const void *bytes, size_t count, const ctiff_request *q, ctiff_picture *out, char *error,
                          size_t error_size) {
    input in = {bytes, count, 0, false};
    memset(out, 0, sizeof *out);
    message[0] = 0;
    TIFFErrorHandler errors = TIFFSetErrorHandler(note_error), warnings = TIFFSetWarningHandler(NULL);
    // "m": without mapping, of which the input is one already.
    TIFF *tiff = TIFFClientOpen(
        "input", "rm", (thandle_t)&in, read_bytes, write_bytes, seek, close_input, size_of, NULL, NULL);
    // What libtiff cannot open at all is libvips' to explain.
    ctiff_status status = tiff ? decode(tiff, q, out, &in, error, error_size) : CTIFF_ORDINARY;
    if (tiff) TIFFClose(tiff);
    TIFFSetErrorHandler(errors);
    TIFFSetWarningHandler(warnings);
    if (status) {
        ctiff_free(out->pixels);
        out->pixels = NULL;
    }
    return status;
}

void ctiff_free(void *pixels) { free(pixels); }

const char *ctiff_version(void) {
    // "LIBTIFF, Version 4.5.0", and lines behind it.
    static char version[32];
    const char *text = TIFFGetVersion(), *number = strpbrk(text, "0123456789");
    size_t length = number ? strcspn(number, "\n ") : 0;
    if (length >= sizeof version) length = sizeof version - 1;
    if (number) memcpy(version, number, length);
    return version;
}

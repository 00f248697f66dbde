#include "cjp2.h"
#include "cpixels.h"

#if __has_include(<openjpeg.h>)
#include <openjpeg.h>
#elif __has_include(<openjpeg-2.5/openjpeg.h>)
#include <openjpeg-2.5/openjpeg.h>
#elif __has_include(<openjpeg-2.4/openjpeg.h>)
#include <openjpeg-2.4/openjpeg.h>
#else
#error "openjpeg.h is missing. Install libopenjp2-7-dev (Debian and Ubuntu) or openjpeg (brew)."
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>

// How much finer than the target a reduced picture must be, so that the final scaling still has something to filter.
#define MARGIN 1.5
// Samples around a part that the scaling may take colour from.
#define SURROUNDINGS 8

// MARK: Input

typedef struct {
    const uint8_t *bytes;
    size_t present; // bytes that are there
    size_t count;   // with zeros behind them that stand for what is missing
    size_t at;
    char text[300]; // the first error of the library
} input;

static OPJ_SIZE_T read_bytes(void *to, OPJ_SIZE_T count, void *user) {
    input *in = user;
    size_t left = in->count - in->at;
    if (!left) return (OPJ_SIZE_T)-1;
    if (count > left) count = left;
    size_t there = in->at < in->present ? in->present - in->at : 0;
    if (there > count) there = count;
    if (there) memcpy(to, in->bytes + in->at, there);
    memset((uint8_t *)to + there, 0, count - there);
    in->at += count;
    return count;
}

static size_t big_endian(const uint8_t *bytes, int count) {
    size_t value = 0;
    for (int i = 0; i < count; i++) value = value << 8 | bytes[i];
    return value;
}

static size_t codestream(const uint8_t *bytes, size_t count) {
    if (count >= 4 && big_endian(bytes, 4) == 0xFF4FFF51) return 0;
    size_t at = 0;
    while (count - at >= 16) {
        size_t length = big_endian(bytes + at, 4), head = length == 1 ? 16 : 8;
        if (length == 1) length = big_endian(bytes + at + 8, 8);
        if (!memcmp(bytes + at + 4, "jp2c", 4)) return at + head;
        if (length < head || length > count - at) break;
        at += length;
    }
    return count;
}

// The bytes that the last tile-part lacks in a file that ends early. Given fewer than a tile-part promises, the library
// decodes memory that it never wrote. Source: ITU-T T.800 A.4.2 (SOT).
static size_t missing_bytes(const uint8_t *bytes, size_t count) {
    enum { SOT = 0xFF90, EOC = 0xFFD9 };
    size_t at = codestream(bytes, count);
    if (count - at < 2) return 0;
    at += 2;
    while (count - at >= 12) {
        size_t marker = big_endian(bytes + at, 2), length = 2 + big_endian(bytes + at + 2, 2);
        if (marker == EOC) return 0;
        if (marker == SOT) {
            length = big_endian(bytes + at + 6, 4);
            if (length < 14) return 0; // up to the end of the file, or damaged
        }
        if (length > count - at) return marker == SOT ? length - (count - at) : 0;
        at += length;
    }
    return 0;
}

static OPJ_BOOL seek_to(OPJ_OFF_T position, void *user) {
    input *in = user;
    if (position < 0 || (uint64_t)position > in->count) return OPJ_FALSE;
    in->at = (size_t)position;
    return OPJ_TRUE;
}

static OPJ_OFF_T skip_bytes(OPJ_OFF_T count, void *user) {
    input *in = user;
    return count >= 0 && seek_to((OPJ_OFF_T)in->at + count, user) ? count : -1;
}

static void note_error(const char *text, void *user) {
    input *in = user;
    if (in->text[0]) return;
    strncpy(in->text, text, sizeof in->text - 1);
    in->text[strcspn(in->text, "\n")] = 0;
}

static void ignore(const char *text, void *user) { (void)text; (void)user; }

// MARK: Geometry

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t ceil_shift(int64_t a, int n) { return (a + ((int64_t)1 << n) - 1) >> n; }

// The picture, as the header tells. JPEG 2000 places it on a canvas, of which it may leave out the beginning.
typedef struct {
    int64_t x0, y0, x1, y1; // of the canvas
    int64_t step_x, step_y; // canvas pixels from one sample of the finest component to the next
    int levels;             // resolutions, each half of the one before
    bool has_tiles;
} canvas;

// How a picture is read: resolutions left out, and the side of the blocks that are averaged afterwards.
typedef struct { int level, factor; } reduction;

static reduction choose(const canvas *c, const cjp2_request *q) {
    reduction r = {0, 1};
    if (q->width <= 0 || q->height <= 0) return r;
    double f = fmin((double)ceil_div(c->x1 - c->x0, c->step_x) / (double)q->width,
                    (double)ceil_div(c->y1 - c->y0, c->step_y) / (double)q->height);
    for (; r.level + 1 < c->levels && f >= 2 * MARGIN; f /= 2) r.level++;
    r.factor = f >= 2 * MARGIN ? (int)fmin(f / MARGIN, 1 << 20) : 1;
    return r;
}

// The area that contains the part that is wanted, on whole blocks; false for all of the picture.
static bool area(const canvas *c, const cjp2_request *q, reduction r, int64_t to[4]) {
    int64_t width = c->x1 - c->x0, height = c->y1 - c->y0;
    int64_t right = (int64_t)q->region_x + q->region_width, bottom = (int64_t)q->region_y + q->region_height;
    if (q->region_width <= 0 || q->region_height <= 0 || q->region_x < 0 || q->region_y < 0 || right > width ||
        bottom > height)
        return false;
    int64_t across = (c->step_x << r.level) * r.factor, down = (c->step_y << r.level) * r.factor;
    to[0] = (c->x0 + q->region_x) / across * across - SURROUNDINGS * across;
    to[1] = (c->y0 + q->region_y) / down * down - SURROUNDINGS * down;
    to[2] = (ceil_div(c->x0 + right, across) + SURROUNDINGS) * across;
    to[3] = (ceil_div(c->y0 + bottom, down) + SURROUNDINGS) * down;
    if (to[0] < c->x0) to[0] = c->x0;
    if (to[1] < c->y0) to[1] = c->y0;
    if (to[2] > c->x1) to[2] = c->x1;
    if (to[3] > c->y1) to[3] = c->y1;
    return (to[2] - to[0]) * (to[3] - to[1]) * 10 < 9 * width * height;
}

// Bytes of the decoded samples of an area, of 32 bits each.
static int64_t memory_for(const opj_image_t *image, const int64_t area[4], int level) {
    int64_t sum = 0;
    for (OPJ_UINT32 i = 0; i < image->numcomps; i++) {
        const opj_image_comp_t *c = &image->comps[i];
        int64_t width = ceil_div(area[2] - area[0], c->dx ? c->dx : 1);
        int64_t height = ceil_div(area[3] - area[1], c->dy ? c->dy : 1);
        sum += 4 * ceil_shift(width, level) * ceil_shift(height, level);
    }
    return sum;
}

// MARK: Colour

typedef struct {
    int count;      // colour channels
    int channel[5]; // their components, and that of alpha
    bool is_ycc;
    cjp2_model model;
    cjp2_alpha alpha;
} roles;

static bool is_cmyk_profile(const opj_image_t *image) {
    return image->icc_profile_buf && image->icc_profile_len >= 20 && !memcmp(image->icc_profile_buf + 16, "CMYK", 4);
}

// Which component is what: the library has put them into the order of their colours (`cdef`, T.800 I.5.3.6).
static bool assign(const opj_image_t *image, roles *to) {
    int colors[4], found = 0, all = 0, alpha = -1, extra = -1;
    for (OPJ_UINT32 i = 0; i < image->numcomps; i++) {
        if (image->comps[i].alpha) {
            if (alpha < 0) alpha = (int)i;
            continue;
        }
        if (all == 1 || all == 3) extra = (int)i; // the one behind grey, and behind red, green and blue
        if (found < 4) colors[found++] = (int)i;
        all++;
    }
    memset(to, 0, sizeof *to);
    bool is_cmyk = all >= 4 && (image->color_space == OPJ_CLRSPC_CMYK || is_cmyk_profile(image));
    bool is_gray = all < 3 || image->color_space == OPJ_CLRSPC_GRAY;
    if (!all) return false;
    to->model = is_cmyk ? CJP2_CMYK : is_gray ? CJP2_GRAY : CJP2_RGB;
    to->count = is_cmyk ? 4 : is_gray ? 1 : 3;
    for (int i = 0; i < to->count; i++) to->channel[i] = colors[i];
    if (to->model == CJP2_RGB) {
        const opj_image_comp_t *first = &image->comps[colors[0]], *second = &image->comps[colors[1]];
        to->is_ycc = image->color_space == OPJ_CLRSPC_SYCC || image->color_space == OPJ_CLRSPC_EYCC ||
            second->dx > first->dx || second->dy > first->dy; // only chroma is coarser, whatever the file says
    }
    if (is_cmyk) return true;
    // Two and four channels without a definition: what other programs write, and read, as alpha.
    bool is_undefined = alpha < 0 && all == to->count + 1;
    if (is_undefined) alpha = extra;
    if (alpha < 0) return true;
    to->channel[to->count] = alpha;
    to->alpha = !is_undefined && image->comps[alpha].alpha == 2 ? CJP2_PREMULTIPLIED : CJP2_STRAIGHT;
    return true;
}

// MARK: Samples

// One channel of the rows to come: where its samples stand, and how they become numbers from 0 to 1.
typedef struct {
    const opj_image_comp_t *component;
    const OPJ_INT32 *row;
    int64_t x0, y0;
    double offset, scale;
    bool is_finest;
} plane;

typedef struct {
    plane planes[5];
    int64_t x0, y0; // of the finest grid at this resolution
    int64_t step_x, step_y;
    int width, height, channels, count;
    bool is_ycc;
} samples;

static bool open_samples(const opj_image_t *image, const roles *r, samples *s) {
    memset(s, 0, sizeof *s);
    s->channels = r->count + (r->alpha != CJP2_OPAQUE);
    s->count = r->count;
    s->is_ycc = r->is_ycc;
    for (int i = 0; i < s->channels; i++) {
        const opj_image_comp_t *c = &image->comps[r->channel[i]];
        if (!c->data || !c->w || !c->h || !c->dx || !c->dy) return false;
        if (c->prec < 1 || c->prec > 31 || c->factor > 32) return false;
        if (!i || c->dx < s->step_x) {
            s->step_x = c->dx;
            s->width = (int)c->w;
            s->x0 = ceil_shift(c->x0, (int)c->factor);
        }
        if (!i || c->dy < s->step_y) {
            s->step_y = c->dy;
            s->height = (int)c->h;
            s->y0 = ceil_shift(c->y0, (int)c->factor);
        }
    }
    for (int i = 0; i < s->channels; i++) {
        plane *p = &s->planes[i];
        p->component = &image->comps[r->channel[i]];
        p->x0 = ceil_shift(p->component->x0, (int)p->component->factor);
        p->y0 = ceil_shift(p->component->y0, (int)p->component->factor);
        bool is_chroma = r->is_ycc && (i == 1 || i == 2);
        double half = (double)((int64_t)1 << (p->component->prec - 1));
        // Chroma is centred on nothing, whether it is signed in the file or not.
        p->offset = is_chroma ? (p->component->sgnd ? 0 : -half) : p->component->sgnd ? half : 0;
        p->scale = 255.0 / (2 * half - 1);
        p->is_finest = p->component->dx == s->step_x && (int)p->component->w >= s->width;
    }
    return s->width > 0 && s->height > 0;
}

static int64_t clamped(int64_t value, int64_t count) { return value < 0 ? 0 : value >= count ? count - 1 : value; }
static uint8_t byte(double value) { return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5); }

static double value(const plane *p, const samples *s, int x) {
    int64_t at = p->is_finest ? x : (s->x0 + x) * s->step_x / p->component->dx - p->x0;
    return (p->row[clamped(at, p->component->w)] + p->offset) * p->scale;
}

// One row of the finest grid, with a coarser component's samples repeated.
static void convert(samples *s, int y, uint8_t *to) {
    for (int i = 0; i < s->channels; i++) {
        plane *p = &s->planes[i];
        int64_t at = (s->y0 + y) * s->step_y / p->component->dy - p->y0;
        p->row = p->component->data + clamped(at, p->component->h) * p->component->w;
    }
    for (int x = 0; x < s->width; x++, to += s->channels) {
        if (s->is_ycc) {
            // IEC 61966-2-1 amendment 1: the matrix of BT.601, full range.
            double luma = value(&s->planes[0], s, x), b = value(&s->planes[1], s, x), r = value(&s->planes[2], s, x);
            to[0] = byte(luma + 1.402 * r);
            to[1] = byte(luma - 0.344136 * b - 0.714136 * r);
            to[2] = byte(luma + 1.772 * b);
        } else {
            for (int i = 0; i < s->count; i++) to[i] = byte(value(&s->planes[i], s, x));
        }
        if (s->channels > s->count) to[s->count] = byte(value(&s->planes[s->count], s, x));
    }
}

// The means of blocks of `factor` by `factor` samples.
static cjp2_status reduce(samples *s, cjp2_picture *out, int factor) {
    bool weighs = factor > 1 && out->alpha == CJP2_STRAIGHT;
    cpixels_means means;
    bool is_started = cpixels_means_start(
        &means, (uint32_t)s->width, (uint32_t)s->height, (uint32_t)factor, s->channels, weighs);
    uint8_t *row = calloc((size_t)s->width, (size_t)s->channels);
    is_started = is_started && row;
    for (int y = 0; is_started && y < s->height; y++) {
        convert(s, y, row);
        cpixels_means_add(&means, row);
    }
    cpixels_means_finish(&means);
    free(row);
    if (!is_started) {
        cjp2_free(means.pixels);
        return CJP2_MEMORY;
    }
    out->pixels = means.pixels;
    out->count = means.count;
    out->width = (int32_t)means.columns;
    out->height = (int32_t)means.rows;
    out->channels = s->channels;
    if (weighs) out->alpha = CJP2_PREMULTIPLIED;
    return CJP2_OK;
}

// MARK: Decoding

typedef struct {
    opj_codec_t *codec;
    opj_stream_t *stream;
    opj_image_t *image;
} decoder;

static void close_decoder(decoder *d) {
    if (d->image) opj_image_destroy(d->image);
    if (d->codec) opj_destroy_codec(d->codec);
    if (d->stream) opj_stream_destroy(d->stream);
}

static bool open_decoder(decoder *d, input *in, bool is_strict) {
    static const uint8_t codestream[] = {0xFF, 0x4F, 0xFF, 0x51};
    bool is_bare = in->count >= 4 && !memcmp(in->bytes, codestream, 4);
    memset(d, 0, sizeof *d);
    d->stream = opj_stream_create(64 << 10, OPJ_TRUE);
    d->codec = opj_create_decompress(is_bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    if (!d->stream || !d->codec) return false;
    opj_stream_set_user_data(d->stream, in, NULL);
    opj_stream_set_user_data_length(d->stream, in->count);
    opj_stream_set_read_function(d->stream, read_bytes);
    opj_stream_set_skip_function(d->stream, skip_bytes);
    opj_stream_set_seek_function(d->stream, seek_to);
    opj_set_info_handler(d->codec, ignore, NULL);
    opj_set_warning_handler(d->codec, ignore, NULL);
    opj_set_error_handler(d->codec, note_error, in);
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    if (!opj_setup_decoder(d->codec, &parameters)) return false;
#if OPJ_VERSION_MAJOR > 2 || OPJ_VERSION_MINOR >= 5
    if (!opj_decoder_set_strict_mode(d->codec, is_strict)) return false;
#else
    (void)is_strict;
#endif
    return opj_read_header(d->stream, d->codec, &d->image) && d->image && d->image->numcomps > 0;
}

static cjp2_status failed(const input *in, char *error, size_t size, const char *text) {
    cjp2_status status = CJP2_CORRUPT;
    if (!text) text = in->text[0] ? in->text : "its codestream cannot be decoded";
    if (strstr(text, "emory") || strstr(text, "llocat")) status = CJP2_MEMORY;
    else if (strstr(text, "too short") || strstr(text, "stream length") || strstr(text, "runcated"))
        status = CJP2_TRUNCATED;
    if (error && size) {
        strncpy(error, text, size - 1);
        error[size - 1] = 0;
    }
    return status;
}

static bool read_canvas(decoder *d, canvas *c) {
    const opj_image_t *image = d->image;
    *c = (canvas){image->x0, image->y0, image->x1, image->y1, image->comps[0].dx, image->comps[0].dy, 1, true};
    opj_codestream_info_v2_t *info = opj_get_cstr_info(d->codec);
    if (info) {
        c->has_tiles = (uint64_t)info->tw * info->th > 1;
        c->levels = 32;
        for (OPJ_UINT32 i = 0; i < image->numcomps && i < info->nbcomps; i++) {
            int own = (int)info->m_default_tile_info.tccp_info[i].numresolutions;
            if (own < c->levels) c->levels = own;
        }
        opj_destroy_cstr_info(&info);
    }
    for (OPJ_UINT32 i = 0; i < image->numcomps; i++) {
        if (image->comps[i].dx < c->step_x) c->step_x = image->comps[i].dx;
        if (image->comps[i].dy < c->step_y) c->step_y = image->comps[i].dy;
    }
    return c->x1 > c->x0 && c->y1 > c->y0 && c->step_x > 0 && c->step_y > 0;
}

static cjp2_status decode(
    input *in, const cjp2_request *q, cjp2_picture *out, int max_level, char *error, size_t size
) {
    memset(out, 0, sizeof *out);
    in->at = 0;
    in->text[0] = 0;
    decoder d;
    canvas c;
    cjp2_status status = CJP2_OK;
    if (!open_decoder(&d, in, !q->allow_partial) || !read_canvas(&d, &c)) {
        status = failed(in, error, size, NULL);
        close_decoder(&d);
        return status;
    }
    if (c.levels > max_level + 1) c.levels = max_level + 1;
    reduction r = choose(&c, q);
    int64_t part[4] = {c.x0, c.y0, c.x1, c.y1};
    out->has_region = area(&c, q, r, part);
    if (!out->has_region) memcpy(part, (int64_t[]){c.x0, c.y0, c.x1, c.y1}, sizeof part);
    int64_t pixels = (c.x1 - c.x0) * (c.y1 - c.y0), memory = memory_for(d.image, part, r.level);
    if (pixels > q->max_pixels) {
        out->actual = pixels;
        status = CJP2_PIXELS;
    } else if (memory > q->max_memory) {
        out->actual = memory;
        status = CJP2_MEMORY;
    } else if ((r.level && !opj_set_decoded_resolution_factor(d.codec, (OPJ_UINT32)r.level)) ||
               !opj_set_decode_area(d.codec, d.image, (OPJ_INT32)part[0], (OPJ_INT32)part[1], (OPJ_INT32)part[2],
                                    (OPJ_INT32)part[3]) ||
               !opj_decode(d.codec, d.stream, d.image) || (in->text[0] && !q->allow_partial)) {
        status = failed(in, error, size, NULL);
        // A tile may have fewer resolutions than the header of the file promises.
        if (r.level && strstr(in->text, "resolutions")) {
            close_decoder(&d);
            return decode(in, q, out, 0, error, size);
        }
    }
    roles who;
    samples all;
    if (!status && d.image->icc_profile_buf && !d.image->icc_profile_len) {
        // The library keeps the parameters of CIELab in the place of a profile.
        failed(in, error, size, "JPEG 2000 in CIELab is not read; convert it to RGB");
        status = CJP2_UNSUPPORTED;
    } else if (!status && (!assign(d.image, &who) || !open_samples(d.image, &who, &all))) {
        status = failed(in, error, size, "it has no samples that could be shown");
    }
    if (!status) {
        out->model = who.model;
        out->alpha = who.alpha;
        double across = (double)((c.step_x << r.level) * r.factor), down = (double)((c.step_y << r.level) * r.factor);
        status = reduce(&all, out, r.factor);
        out->extent_width = fmin(out->width, (double)(part[2] - part[0]) / across);
        out->extent_height = fmin(out->height, (double)(part[3] - part[1]) / down);
        out->region_x = (int32_t)(part[0] - c.x0);
        out->region_y = (int32_t)(part[1] - c.y0);
        out->region_width = (int32_t)(part[2] - part[0]);
        out->region_height = (int32_t)(part[3] - part[1]);
    }
    close_decoder(&d);
    return status;
}

cjp2_status cjp2_decode(const void *bytes, size_t count, const cjp2_request *q, cjp2_picture *out, char *error,
                        size_t error_size) {
    input in = {bytes, count, count, 0, {0}};
    cjp2_request strict = *q;
    strict.allow_partial = false;
    cjp2_status status = decode(&in, &strict, out, 32, error, error_size);
    if (q->allow_partial && (status == CJP2_TRUNCATED || status == CJP2_CORRUPT)) {
        cjp2_request lenient = *q;
        size_t missing = missing_bytes(bytes, count);
        if (missing > (size_t)(q->max_memory > 0 ? q->max_memory : 0)) return status;
        in.count = count + missing;
        cjp2_status again = decode(&in, &lenient, out, 32, error, error_size);
        if (!again) out->is_partial = true;
        return again ? status : CJP2_OK;
    }
    return status;
}

void cjp2_free(void *pixels) { free(pixels); }

const char *cjp2_version(void) { return opj_version(); }

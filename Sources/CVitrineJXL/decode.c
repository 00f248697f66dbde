#include "cjxl.h"

#include "library.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Functions of colour profiles took the pixel format, without a use, until libjxl 0.9.
#if JPEGXL_NUMERIC_VERSION >= JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
#define PROFILE_OF(j) JXL_COLOR_PROFILE_TARGET_DATA
#define ORIGINAL_PROFILE_OF(j) JXL_COLOR_PROFILE_TARGET_ORIGINAL
#else
#define ORIGINAL_PROFILE_OF(j) &(j)->format, JXL_COLOR_PROFILE_TARGET_ORIGINAL
#define PROFILE_OF(j) &(j)->format, JXL_COLOR_PROFILE_TARGET_DATA
#endif

// How much finer than the target a reduced picture must be, so that the final scaling still has something to filter.
#define MARGIN 1.5

void cjxl_free(void *p) { free(p); }

typedef struct {
    const cjxl_request *request;
    cjxl_picture *out;
    JxlBasicInfo info;
    JxlPixelFormat format;
    uint64_t *sums;   // of each block and channel; colours weighted by alpha
    uint8_t *whole;   // every pixel, where it is needed in one piece
    bool has_alpha, is_sampled;
} job;

// The same for words.
static void take_words(job *j, size_t x, size_t y, size_t count, const uint16_t *p) {
    size_t channels = j->format.num_channels, factor = (size_t)j->out->factor, width = (size_t)j->out->width;
    if (y >= j->info.ysize || x >= j->info.xsize) return;
    if (count > j->info.xsize - x) count = j->info.xsize - x;
    if (factor == 1) {
        memcpy(j->out->pixels + (y * width + x) * channels * 2, p, count * channels * 2);
        return;
    }
    size_t colors = channels - j->has_alpha;
    for (size_t end = x + count; x < end; x++, p += channels) {
        uint64_t *block = j->sums + ((y / factor) * width + x / factor) * channels;
        uint64_t alpha = j->has_alpha && !j->out->is_premultiplied ? p[colors] : 65535;
        for (size_t c = 0; c < colors; c++) block[c] += (p[c] * alpha + 32767) / 65535;
        if (j->has_alpha) block[colors] += p[colors];
    }
}

// Adds a run of pixels to the blocks they fall into, or stores them. Runs come in any order.
static void take(void *user, size_t x, size_t y, size_t count, const void *pixels) {
    job *j = user;
    if (j->out->is_deep) {
        take_words(j, x, y, count, pixels);
        return;
    }
    const uint8_t *p = pixels;
    size_t channels = j->format.num_channels, factor = (size_t)j->out->factor, width = (size_t)j->out->width;
    if (y >= j->info.ysize || x >= j->info.xsize) return;
    if (count > j->info.xsize - x) count = j->info.xsize - x;
    if (factor == 1) {
        memcpy(j->out->pixels + (y * width + x) * channels, p, count * channels);
        return;
    }
    uint64_t *row = j->sums + (y / factor) * width * channels;
    size_t colors = channels - j->has_alpha, end = x + count;
    while (x < end) {
        size_t block = x / factor, stop = (block + 1) * factor < end ? (block + 1) * factor : end;
        uint32_t total[4] = {0, 0, 0, 0};
        if (j->has_alpha) {
            for (; x < stop; x++, p += channels) {
                uint32_t alpha = p[colors];
                for (size_t c = 0; c < colors; c++)
                    total[c] += j->out->is_premultiplied ? p[c] : (p[c] * alpha * 257 + 32768) >> 16;
                total[colors] += alpha;
            }
        } else if (channels == 3) {
            for (; x < stop; x++, p += 3) {
                total[0] += p[0];
                total[1] += p[1];
                total[2] += p[2];
            }
        } else {
            for (; x < stop; x++, p++) total[0] += *p;
        }
        for (size_t c = 0; c < channels; c++) row[block * channels + c] += total[c];
    }
}

// Memory for the picture, and for the sums of its blocks.
static cjxl_status reserve(job *j) {
    cjxl_picture *out = j->out;
    size_t bytes = out->is_deep ? 2 : 1;
    out->count = (size_t)out->width * (size_t)out->height * (size_t)out->channels * bytes;
    out->pixels = calloc(out->count, 1);
    if (out->factor > 1) j->sums = calloc(out->count / bytes, sizeof *j->sums);
    return out->pixels && (out->factor == 1 || j->sums) ? CJXL_OK : CJXL_MEMORY;
}

static cjxl_status prepare(job *j, JxlDecoder *decoder) {
    const cjxl_request *q = j->request;
    cjxl_picture *out = j->out;
    int64_t width = j->info.xsize, height = j->info.ysize, side = width > height ? width : height;
    if (side > q->max_side) {
        out->actual = side;
        return CJXL_SIDE;
    }
    if (width * height > q->max_pixels) {
        out->actual = width * height;
        return CJXL_PIXELS;
    }
    for (uint32_t i = 0; i < j->info.num_extra_channels; i++) {
        JxlExtraChannelInfo extra;
        if (JxlDecoderGetExtraChannelInfo(decoder, i, &extra) == JXL_DEC_SUCCESS && extra.type == JXL_CHANNEL_BLACK)
            return CJXL_UNSUPPORTED;
    }
    j->has_alpha = j->info.alpha_bits > 0;
    j->format.num_channels = j->info.num_color_channels + j->has_alpha;
    j->format.data_type = JXL_TYPE_UINT8;
    j->format.endianness = JXL_NATIVE_ENDIAN;
    out->factor = 1;
    if (q->width > 0 && q->height > 0) {
        double x = (double)width / (double)q->width, y = (double)height / (double)q->height;
        double factor = (x < y ? x : y) / MARGIN;
        // Sums of a block stay within 32 bits.
        out->factor = factor < 1 ? 1 : factor > 4096 ? 4096 : (int32_t)factor;
    }
    out->channels = (int32_t)j->format.num_channels;
    out->width = (int32_t)((width + out->factor - 1) / out->factor);
    out->height = (int32_t)((height + out->factor - 1) / out->factor);
    out->extent_width = (double)width / out->factor;
    out->extent_height = (double)height / out->factor;
    out->is_premultiplied = j->has_alpha && j->info.alpha_premultiplied;
    return CJXL_OK;
}

// Whether the picture has high dynamic range, whose samples stay as they are encoded: the library would cut their
// highlights off. 8 bits would be too few for them.
static bool keeps_high_range(job *j, JxlDecoder *decoder) {
    JxlColorEncoding color;
    if (JxlDecoderGetColorAsEncodedProfile(decoder, ORIGINAL_PROFILE_OF(j), &color) != JXL_DEC_SUCCESS ||
        color.white_point != JXL_WHITE_POINT_D65 ||
        (color.transfer_function != JXL_TRANSFER_FUNCTION_PQ && color.transfer_function != JXL_TRANSFER_FUNCTION_HLG))
        return false;
    JxlTransferFunction transfer = color.transfer_function;
    bool is_gray = color.color_space == JXL_COLOR_SPACE_GRAY;
    if (!is_gray && color.primaries != JXL_PRIMARIES_SRGB && color.primaries != JXL_PRIMARIES_2100 &&
        color.primaries != JXL_PRIMARIES_P3)
        return false;
    if (!j->info.uses_original_profile) {
        JxlDecoderSetPreferredColorProfile(decoder, &color);
        if (JxlDecoderGetColorAsEncodedProfile(decoder, PROFILE_OF(j), &color) != JXL_DEC_SUCCESS ||
            color.transfer_function != transfer)
            return false;
    }
    j->out->is_deep = true;
    j->format.data_type = JXL_TYPE_UINT16;
    j->out->transfer = transfer == JXL_TRANSFER_FUNCTION_PQ ? 16 : 18;
    j->out->primaries = is_gray || color.primaries == JXL_PRIMARIES_2100 ? 9
        : color.primaries == JXL_PRIMARIES_P3 ? 12 : 1;
    return true;
}

// Asks for sRGB; where the library cannot, keeps the profile.
static void choose_color(job *j, JxlDecoder *decoder) {
    if (keeps_high_range(j, decoder)) return;
    JxlColorEncoding color;
    memset(&color, 0, sizeof color);
    color.color_space = j->info.num_color_channels == 1 ? JXL_COLOR_SPACE_GRAY : JXL_COLOR_SPACE_RGB;
    color.white_point = JXL_WHITE_POINT_D65;
    color.primaries = JXL_PRIMARIES_SRGB;
    color.transfer_function = JXL_TRANSFER_FUNCTION_SRGB;
    color.rendering_intent = JXL_RENDERING_INTENT_RELATIVE;
    if (!j->info.uses_original_profile) JxlDecoderSetPreferredColorProfile(decoder, &color);
    if (JxlDecoderGetColorAsEncodedProfile(decoder, PROFILE_OF(j), &color) == JXL_DEC_SUCCESS &&
        color.white_point == JXL_WHITE_POINT_D65 &&
        color.transfer_function == JXL_TRANSFER_FUNCTION_SRGB &&
        (color.color_space == JXL_COLOR_SPACE_GRAY || color.primaries == JXL_PRIMARIES_SRGB))
        return;
    size_t size = 0;
    if (JxlDecoderGetICCProfileSize(decoder, PROFILE_OF(j), &size) != JXL_DEC_SUCCESS ||
        size == 0 || size > j->request->max_profile || j->out->profile)
        return;
    uint8_t *profile = malloc(size);
    if (profile && JxlDecoderGetColorAsICCProfile(decoder, PROFILE_OF(j), profile, size) == JXL_DEC_SUCCESS) {
        j->out->profile = profile;
        j->out->profile_count = size;
    } else {
        free(profile);
    }
}

// Whole rows, which can be asked for again when the input turns out to end early.
static cjxl_status whole_buffer(job *j, JxlDecoder *decoder) {
    size_t size = 0;
    if (JxlDecoderImageOutBufferSize(decoder, &j->format, &size) != JXL_DEC_SUCCESS ||
        size != (size_t)j->info.xsize * j->info.ysize * j->format.num_channels * (j->out->is_deep ? 2 : 1))
        return CJXL_FAILED;
    j->whole = calloc(size, 1);
    if (!j->whole) return CJXL_MEMORY;
    return JxlDecoderSetImageOutBuffer(decoder, &j->format, j->whole, size) == JXL_DEC_SUCCESS ? CJXL_OK : CJXL_FAILED;
}

static cjxl_status run(job *j, JxlDecoder *decoder) {
    for (;;) {
        cjxl_status status = CJXL_OK;
        switch (JxlDecoderProcessInput(decoder)) {
        case JXL_DEC_BASIC_INFO:
            if (JxlDecoderGetBasicInfo(decoder, &j->info) != JXL_DEC_SUCCESS) return CJXL_CORRUPT;
            status = prepare(j, decoder);
            break;
        case JXL_DEC_COLOR_ENCODING:
            choose_color(j, decoder);
            // The first frame's; those of an animation have their memory before.
            if (!j->out->pixels) status = reserve(j);
            break;
        case JXL_DEC_NEED_IMAGE_OUT_BUFFER:
            if (!j->out->pixels) return CJXL_CORRUPT;
            if (j->request->allow_partial) status = whole_buffer(j, decoder);
            else if (JxlDecoderSetImageOutCallback(decoder, &j->format, take, j) != JXL_DEC_SUCCESS)
                status = CJXL_FAILED;
            break;
        case JXL_DEC_FULL_IMAGE: return CJXL_OK;
        case JXL_DEC_NEED_MORE_INPUT:
            if (!j->whole || JxlDecoderFlushImage(decoder) != JXL_DEC_SUCCESS) return CJXL_TRUNCATED;
            j->out->is_partial = true;
            return CJXL_OK;
        case JXL_DEC_SUCCESS: return CJXL_NO_FRAME;
        default: return CJXL_CORRUPT;
        }
        if (status) return status;
    }
}

// Turns sums into means.
static void divide(job *j) {
    cjxl_picture *out = j->out;
    size_t factor = (size_t)out->factor, channels = (size_t)out->channels;
    for (size_t y = 0; y < (size_t)out->height; y++) {
        size_t rows = j->info.ysize - y * factor < factor ? j->info.ysize - y * factor : factor;
        for (size_t x = 0; x < (size_t)out->width; x++) {
            size_t columns = j->info.xsize - x * factor < factor ? j->info.xsize - x * factor : factor;
            uint32_t n = (uint32_t)(rows * columns);
            size_t i = (y * (size_t)out->width + x) * channels;
            for (size_t c = 0; c < channels; c++) {
                uint64_t mean = (j->sums[i + c] + n / 2) / n;
                if (out->is_deep) ((uint16_t *)out->pixels)[i + c] = (uint16_t)mean;
                else out->pixels[i + c] = (uint8_t)mean;
            }
        }
    }
    if (j->has_alpha) out->is_premultiplied = true;
}

cjxl_status cjxl_decode(const uint8_t *bytes, size_t count, const cjxl_request *q, cjxl_picture *out) {
    memset(out, 0, sizeof *out);
    job j;
    memset(&j, 0, sizeof j);
    j.request = q;
    j.out = out;
    JxlDecoder *decoder = JxlDecoderCreate(NULL);
    if (!decoder) return CJXL_MEMORY;
    cjxl_status status = CJXL_FAILED;
    if (JxlDecoderSubscribeEvents(decoder, JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING | JXL_DEC_FULL_IMAGE) ==
            JXL_DEC_SUCCESS &&
        JxlDecoderSetKeepOrientation(decoder, JXL_TRUE) == JXL_DEC_SUCCESS &&
        JxlDecoderSetInput(decoder, bytes, count) == JXL_DEC_SUCCESS) {
        // The input is not closed: for want of more the library then asks, instead of failing.
        if (q->frame > 0) JxlDecoderSkipFrames(decoder, (size_t)q->frame);
        status = run(&j, decoder);
    }
    if (!status && j.whole) {
        size_t stride = (size_t)j.info.xsize * j.format.num_channels * (out->is_deep ? 2 : 1);
        for (size_t y = 0; y < j.info.ysize; y++) take(&j, 0, y, j.info.xsize, j.whole + y * stride);
    }
    if (!status && j.sums) divide(&j);
    JxlDecoderDestroy(decoder);
    free(j.sums);
    free(j.whole);
    if (status) {
        free(out->pixels);
        free(out->profile);
        out->pixels = NULL;
        out->profile = NULL;
    }
    return status;
}

// Sums and pixels belong to one frame; everything else stays from frame to frame.
struct cjxl_animation {
    cjxl_request request;
    cjxl_picture shape;
    job job;
    JxlDecoder *decoder;
    bool is_open;
};

cjxl_animation *cjxl_animation_open(const uint8_t *bytes, size_t count, const cjxl_request *q) {
    cjxl_animation *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->request = *q;
    a->request.allow_partial = false;
    a->job.request = &a->request;
    a->job.out = &a->shape;
    a->decoder = JxlDecoderCreate(NULL);
    if (!a->decoder) {
        free(a);
        return NULL;
    }
    a->is_open = JxlDecoderSubscribeEvents(
                     a->decoder, JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING | JXL_DEC_FULL_IMAGE) == JXL_DEC_SUCCESS &&
                 JxlDecoderSetKeepOrientation(a->decoder, JXL_TRUE) == JXL_DEC_SUCCESS &&
                 JxlDecoderSetInput(a->decoder, bytes, count) == JXL_DEC_SUCCESS;
    return a;
}

cjxl_status cjxl_animation_next(cjxl_animation *a, cjxl_picture *out) {
    memset(out, 0, sizeof *out);
    if (!a->is_open) return CJXL_FAILED;
    cjxl_status status = a->shape.count > 0 ? reserve(&a->job) : CJXL_OK;
    if (!status) status = run(&a->job, a->decoder);
    if (!status && a->job.sums) divide(&a->job);
    free(a->job.sums);
    a->job.sums = NULL;
    if (status) {
        free(a->shape.pixels);
        out->actual = a->shape.actual;
    } else {
        *out = a->shape;
        // The caller gets a copy of the profile with each frame.
        if (a->shape.profile) {
            out->profile = malloc(a->shape.profile_count);
            if (out->profile) memcpy(out->profile, a->shape.profile, a->shape.profile_count);
            else out->profile_count = 0;
        }
    }
    a->shape.pixels = NULL;
    return status;
}

void cjxl_animation_close(cjxl_animation *a) {
    if (!a) return;
    JxlDecoderDestroy(a->decoder);
    free(a->shape.pixels);
    free(a->shape.profile);
    free(a->job.sums);
    free(a->job.whole);
    free(a);
}

const char *cjxl_version(void)
{
    static char text[32];
    uint32_t version = JxlDecoderVersion();
    snprintf(text, sizeof text, "%u.%u.%u", version / 1000000, version / 1000 % 1000, version % 1000);
    return text;
}

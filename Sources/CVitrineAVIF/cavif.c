#include "cavif.h"

#include "library.h"
#include <stdlib.h>
#include <string.h>

struct cavif_decoder {
    avifDecoder *decoder;
};

static int status_of(avifResult result)
{
    switch (result) {
    case AVIF_RESULT_OK: return CAVIF_OK;
    case AVIF_RESULT_TRUNCATED_DATA:
    case AVIF_RESULT_WAITING_ON_IO:
    case AVIF_RESULT_IO_ERROR: return CAVIF_TRUNCATED;
#if AVIF_VERSION >= 100000
    case AVIF_RESULT_OUT_OF_MEMORY: return CAVIF_MEMORY;
#endif
    case AVIF_RESULT_NO_CODEC_AVAILABLE:
    case AVIF_RESULT_UNSUPPORTED_DEPTH:
    case AVIF_RESULT_NO_AV1_ITEMS_FOUND:
    case AVIF_RESULT_INVALID_FTYP:
    case AVIF_RESULT_REFORMAT_FAILED:
    case AVIF_RESULT_NOT_IMPLEMENTED: return CAVIF_REFUSED;
    default: return CAVIF_CORRUPT;
    }
}

cavif_decoder *cavif_decoder_create(const uint8_t *data, size_t count, uint32_t maximum_pixels, uint32_t maximum_side,
                                    int threads)
{
    if (cavif_missing()) return NULL;
    cavif_decoder *result = calloc(1, sizeof *result);
    if (!result) return NULL;
    avifDecoder *decoder = result->decoder = avifDecoderCreate();
    if (!decoder) {
        free(result);
        return NULL;
    }
    if (avifCodecName(AVIF_CODEC_CHOICE_DAV1D, AVIF_CODEC_FLAG_CAN_DECODE))
        decoder->codecChoice = AVIF_CODEC_CHOICE_DAV1D;
    decoder->maxThreads = threads;
    decoder->ignoreExif = decoder->ignoreXMP = AVIF_TRUE;
    // The library reads 0 as no limit or refuses it, and treats its default as the most it can.
    if (maximum_pixels > 0 && maximum_pixels < AVIF_DEFAULT_IMAGE_SIZE_LIMIT) decoder->imageSizeLimit = maximum_pixels;
#if AVIF_VERSION >= 110000
    if (maximum_side > 0) decoder->imageDimensionLimit = maximum_side;
#else
    (void)maximum_side; // the caller checks the sides that the header tells
#endif
    // Pictures of older encoders lack properties that only strictness asks for; every viewer shows them.
    decoder->strictFlags = AVIF_STRICT_DISABLED;
    if (avifDecoderSetIOMemory(decoder, data, count) != AVIF_RESULT_OK) {
        cavif_decoder_destroy(result);
        return NULL;
    }
    return result;
}

void cavif_decoder_destroy(cavif_decoder *decoder)
{
    if (!decoder) return;
    avifDecoderDestroy(decoder->decoder);
    free(decoder);
}

int cavif_decoder_open(cavif_decoder *decoder) { return status_of(avifDecoderParse(decoder->decoder)); }

void cavif_decoder_describe(const cavif_decoder *decoder, uint32_t *width, uint32_t *height, uint32_t *frames)
{
    *width = decoder->decoder->image->width;
    *height = decoder->decoder->image->height;
    *frames = decoder->decoder->imageCount > 0 ? (uint32_t)decoder->decoder->imageCount : 0;
}

int cavif_decoder_read(cavif_decoder *decoder, uint32_t index, cavif_frame *frame)
{
    int status = status_of(avifDecoderNthImage(decoder->decoder, index));
    if (status != CAVIF_OK) return status;
    const avifImage *image = decoder->decoder->image;
    memset(frame, 0, sizeof *frame);
    switch (image->yuvFormat) {
    case AVIF_PIXEL_FORMAT_YUV400: frame->layout = CAVIF_GRAY; break;
    case AVIF_PIXEL_FORMAT_YUV420: frame->layout = CAVIF_420; break;
    case AVIF_PIXEL_FORMAT_YUV422: frame->layout = CAVIF_422; break;
    case AVIF_PIXEL_FORMAT_YUV444: frame->layout = CAVIF_444; break;
    default: return CAVIF_CORRUPT;
    }
    frame->width = (int)image->width;
    frame->height = (int)image->height;
    frame->depth = (int)image->depth;
    frame->full_range = image->yuvRange == AVIF_RANGE_FULL;
    frame->primaries = image->colorPrimaries;
    frame->transfer = image->transferCharacteristics;
    frame->matrix = image->matrixCoefficients;
    frame->premultiplied = image->alphaPremultiplied;
    frame->y = image->yuvPlanes[AVIF_CHAN_Y];
    frame->u = image->yuvPlanes[AVIF_CHAN_U];
    frame->v = image->yuvPlanes[AVIF_CHAN_V];
    frame->alpha = image->alphaPlane;
    frame->y_stride = image->yuvRowBytes[AVIF_CHAN_Y];
    frame->u_stride = image->yuvRowBytes[AVIF_CHAN_U];
    frame->v_stride = image->yuvRowBytes[AVIF_CHAN_V];
    frame->alpha_stride = image->alphaRowBytes;
    if (!frame->y || (frame->layout != CAVIF_GRAY && (!frame->u || !frame->v))) return CAVIF_CORRUPT;
    return CAVIF_OK;
}

int cavif_decoder_convert(cavif_decoder *decoder, uint8_t *pixels, size_t stride, int channels, int premultiplied)
{
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, decoder->decoder->image);
    rgb.format = channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.depth = 8;
    rgb.alphaPremultiplied = premultiplied;
    rgb.pixels = pixels;
    rgb.rowBytes = (uint32_t)stride;
    avifResult result = avifImageYUVToRGB(decoder->decoder->image, &rgb);
    return status_of(result);
}


// From version 1.0 on, setting metadata can fail; before, the functions return nothing.
#if AVIF_VERSION >= 1000000
#define SUCCEEDS(call) ((call) == AVIF_RESULT_OK)
#else
#define SUCCEEDS(call) ((call), 1)
#endif

static avifImage *image_from(const cavif_encoding *encoding, const char **reason)
{
    avifImage *image = avifImageCreate(
        encoding->width, encoding->height, 8,
        encoding->full_chroma ? AVIF_PIXEL_FORMAT_YUV444 : AVIF_PIXEL_FORMAT_YUV420);
    *reason = "out of memory";
    if (!image) return NULL;
    image->colorPrimaries = AVIF_COLOR_PRIMARIES_BT709;
    image->transferCharacteristics = AVIF_TRANSFER_CHARACTERISTICS_SRGB;
    image->matrixCoefficients = AVIF_MATRIX_COEFFICIENTS_BT601;
    image->yuvRange = AVIF_RANGE_FULL;
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, image);
    rgb.format = AVIF_RGB_FORMAT_RGBA;
    rgb.ignoreAlpha = !encoding->has_alpha;
    rgb.pixels = (uint8_t *)encoding->rgba;
    rgb.rowBytes = encoding->stride;
    avifResult result = avifImageRGBToYUV(image, &rgb);
    *reason = avifResultToString(result);
    int ok = result == AVIF_RESULT_OK;
    if (ok && encoding->exif && !SUCCEEDS(avifImageSetMetadataExif(image, encoding->exif, encoding->exif_count))) {
        *reason = "libavif refused the Exif metadata";
        ok = 0;
    }
    if (ok && encoding->xmp && !SUCCEEDS(avifImageSetMetadataXMP(image, encoding->xmp, encoding->xmp_count))) {
        *reason = "libavif refused the XMP metadata";
        ok = 0;
    }
    if (ok) return image;
    avifImageDestroy(image);
    return NULL;
}

static void configure(avifEncoder *encoder, const cavif_encoding *encoding)
{
    encoder->maxThreads = 1;
    encoder->speed = encoding->speed;
    if (avifCodecName(AVIF_CODEC_CHOICE_AOM, AVIF_CODEC_FLAG_CAN_ENCODE)) encoder->codecChoice = AVIF_CODEC_CHOICE_AOM;
    // The same lower and upper bound means constant quality in every version of the library.
    encoder->minQuantizer = encoder->maxQuantizer = encoding->quantizer;
    encoder->minQuantizerAlpha = encoder->maxQuantizerAlpha = encoding->quantizer / 2;
}

uint8_t *cavif_encode(const cavif_encoding *encoding, size_t *count, const char **reason)
{
    *reason = cavif_missing();
    if (*reason) return NULL;
    avifImage *image = image_from(encoding, reason);
    if (!image) return NULL;
    avifEncoder *encoder = avifEncoderCreate();
    if (!encoder) {
        avifImageDestroy(image);
        *reason = "out of memory";
        return NULL;
    }
    avifRWData output = AVIF_DATA_EMPTY;
    configure(encoder, encoding);
    avifResult result = avifEncoderAddImage(encoder, image, 1, AVIF_ADD_IMAGE_FLAG_SINGLE);
    if (result == AVIF_RESULT_OK) result = avifEncoderFinish(encoder, &output);
    avifEncoderDestroy(encoder);
    avifImageDestroy(image);
    if (result != AVIF_RESULT_OK) {
        avifRWDataFree(&output);
        *reason = avifResultToString(result);
        return NULL;
    }
    *count = output.size;
    return output.data;
}

struct cavif_animation {
    avifEncoder *encoder;
    cavif_encoding encoding;
};

cavif_animation *cavif_animation_create(const cavif_encoding *encoding, int plays, const char **reason)
{
    *reason = cavif_missing();
    if (*reason) return NULL;
    *reason = "out of memory";
    cavif_animation *animation = calloc(1, sizeof *animation);
    if (!animation) return NULL;
    animation->encoding = *encoding;
    animation->encoding.exif = animation->encoding.xmp = NULL;
    avifEncoder *encoder = animation->encoder = avifEncoderCreate();
    if (!encoder) {
        free(animation);
        return NULL;
    }
    configure(encoder, encoding);
    encoder->timescale = 1000;
#if AVIF_VERSION >= 1000000
    encoder->repetitionCount = plays > 0 ? plays - 1 : AVIF_REPETITION_COUNT_INFINITE;
#else
    (void)plays;
#endif
    return animation;
}

int cavif_animation_add(cavif_animation *animation, const uint8_t *rgba, uint32_t milliseconds, const char **reason)
{
    animation->encoding.rgba = rgba;
    avifImage *image = image_from(&animation->encoding, reason);
    if (!image) return 0;
    avifResult result = avifEncoderAddImage(animation->encoder, image, milliseconds, AVIF_ADD_IMAGE_FLAG_NONE);
    avifImageDestroy(image);
    *reason = avifResultToString(result);
    return result == AVIF_RESULT_OK;
}

uint8_t *cavif_animation_finish(cavif_animation *animation, size_t *count, const char **reason)
{
    avifRWData output = AVIF_DATA_EMPTY;
    avifResult result = avifEncoderFinish(animation->encoder, &output);
    *reason = avifResultToString(result);
    if (result != AVIF_RESULT_OK) {
        avifRWDataFree(&output);
        return NULL;
    }
    *count = output.size;
    return output.data;
}

void cavif_animation_destroy(cavif_animation *animation)
{
    if (!animation) return;
    avifEncoderDestroy(animation->encoder);
    free(animation);
}

void cavif_free(uint8_t *bytes) { avifFree(bytes); }

#include "cwebp.h"

#if !__has_include(<webp/decode.h>)
#error "webp/decode.h is missing. Install libwebp-dev (Debian and Ubuntu) or webp (brew)."
#endif
#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>
#include <webp/demux.h>
#include <webp/encode.h>
#include <webp/mux.h>

static int status_of(VP8StatusCode code)
{
    switch (code) {
    case VP8_STATUS_OK: return CWEBP_OK;
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA: return CWEBP_MORE;
    case VP8_STATUS_OUT_OF_MEMORY: return CWEBP_MEMORY;
    case VP8_STATUS_INVALID_PARAM:
    case VP8_STATUS_UNSUPPORTED_FEATURE: return CWEBP_REFUSED;
    default: return CWEBP_CORRUPT;
    }
}

int cwebp_read_features(const uint8_t *data, size_t count, cwebp_features *features)
{
    WebPBitstreamFeatures found;
    int status = status_of(WebPGetFeatures(data, count, &found));
    if (status != CWEBP_OK) return status == CWEBP_MORE ? CWEBP_MORE : CWEBP_CORRUPT;
    features->width = found.width;
    features->height = found.height;
    features->has_alpha = found.has_alpha;
    features->has_animation = found.has_animation;
    features->is_lossless = found.format == 2;
    return CWEBP_OK;
}

// The incremental decoder keeps a pointer to the configuration, so both live and die together.
struct cwebp_decoder {
    WebPDecoderConfig config;
    WebPIDecoder *incremental;
    int is_yuv;
};

static cwebp_decoder *decoder_create(int draft)
{
    cwebp_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder) return NULL;
    if (!WebPInitDecoderConfig(&decoder->config)) {
        free(decoder);
        return NULL;
    }
    decoder->config.options.bypass_filtering = draft;
    decoder->config.options.no_fancy_upsampling = draft;
    decoder->config.output.is_external_memory = 1;
    return decoder;
}

static cwebp_decoder *decoder_open(cwebp_decoder *decoder)
{
    decoder->incremental = WebPIDecode(NULL, 0, &decoder->config);
    if (decoder->incremental) return decoder;
    free(decoder);
    return NULL;
}

cwebp_decoder *cwebp_decoder_create_yuv(int width, int height, uint8_t *y, int y_stride, uint8_t *u, uint8_t *v,
                                        int uv_stride, int draft)
{
    cwebp_decoder *decoder = decoder_create(draft);
    if (!decoder) return NULL;
    WebPDecBuffer *output = &decoder->config.output;
    size_t chroma = (size_t)uv_stride * (size_t)((height + 1) / 2);
    output->colorspace = MODE_YUV;
    output->width = width;
    output->height = height;
    output->u.YUVA.y = y;
    output->u.YUVA.u = u;
    output->u.YUVA.v = v;
    output->u.YUVA.y_stride = y_stride;
    output->u.YUVA.u_stride = output->u.YUVA.v_stride = uv_stride;
    output->u.YUVA.y_size = (size_t)y_stride * (size_t)height;
    output->u.YUVA.u_size = output->u.YUVA.v_size = chroma;
    decoder->is_yuv = 1;
    return decoder_open(decoder);
}

cwebp_decoder *cwebp_decoder_create_rgb(int width, int height, uint8_t *pixels, int stride, int layout, int draft)
{
    cwebp_decoder *decoder = decoder_create(draft);
    if (!decoder) return NULL;
    WebPDecBuffer *output = &decoder->config.output;
    output->colorspace = layout == CWEBP_RGB ? MODE_RGB : layout == CWEBP_RGBA ? MODE_RGBA : MODE_rgbA;
    output->width = width;
    output->height = height;
    output->u.RGBA.rgba = pixels;
    output->u.RGBA.stride = stride;
    output->u.RGBA.size = (size_t)stride * (size_t)height;
    return decoder_open(decoder);
}

void cwebp_decoder_destroy(cwebp_decoder *decoder)
{
    if (!decoder) return;
    WebPIDelete(decoder->incremental);
    WebPFreeDecBuffer(&decoder->config.output);
    free(decoder);
}

int cwebp_decoder_update(cwebp_decoder *decoder, const uint8_t *data, size_t count)
{
    return status_of(WebPIUpdate(decoder->incremental, data, count));
}

int cwebp_decoder_rows(const cwebp_decoder *decoder)
{
    int rows = 0, width, height, stride;
    if (decoder->is_yuv) {
        uint8_t *u, *v;
        if (!WebPIDecGetYUV(decoder->incremental, &rows, &u, &v, &width, &height, &stride, &stride)) return 0;
    } else if (!WebPIDecGetRGB(decoder->incremental, &rows, &width, &height, &stride)) {
        return 0;
    }
    return rows;
}

struct cwebp_demuxer {
    WebPDemuxer *demuxer;
};

cwebp_demuxer *cwebp_demuxer_create(const uint8_t *data, size_t count, int partial)
{
    WebPData bytes = { data, count };
    WebPDemuxState state;
    WebPDemuxer *demuxer = WebPDemuxPartial(&bytes, &state);
    if (!demuxer) return NULL;
    if (state == WEBP_DEMUX_PARSE_ERROR || (state != WEBP_DEMUX_DONE && !partial)) {
        WebPDemuxDelete(demuxer);
        return NULL;
    }
    cwebp_demuxer *result = malloc(sizeof *result);
    if (!result) {
        WebPDemuxDelete(demuxer);
        return NULL;
    }
    result->demuxer = demuxer;
    return result;
}

void cwebp_demuxer_destroy(cwebp_demuxer *demuxer)
{
    if (!demuxer) return;
    WebPDemuxDelete(demuxer->demuxer);
    free(demuxer);
}

int cwebp_demuxer_frame_count(const cwebp_demuxer *demuxer)
{
    return (int)WebPDemuxGetI(demuxer->demuxer, WEBP_FF_FRAME_COUNT);
}

void cwebp_demuxer_canvas(const cwebp_demuxer *demuxer, int *width, int *height)
{
    *width = (int)WebPDemuxGetI(demuxer->demuxer, WEBP_FF_CANVAS_WIDTH);
    *height = (int)WebPDemuxGetI(demuxer->demuxer, WEBP_FF_CANVAS_HEIGHT);
}

int cwebp_demuxer_frame(const cwebp_demuxer *demuxer, int index, cwebp_frame *frame)
{
    WebPIterator found;
    if (index < 0 || !WebPDemuxGetFrame(demuxer->demuxer, index + 1, &found)) return 0;
    frame->x = found.x_offset;
    frame->y = found.y_offset;
    frame->width = found.width;
    frame->height = found.height;
    frame->has_alpha = found.has_alpha;
    frame->blends = found.blend_method == WEBP_MUX_BLEND;
    frame->clears = found.dispose_method == WEBP_MUX_DISPOSE_BACKGROUND;
    frame->is_complete = found.complete;
    frame->data = found.fragment.bytes;
    frame->count = found.fragment.size;
    WebPDemuxReleaseIterator(&found);
    return 1;
}

static const char *reason_of(WebPEncodingError code)
{
    switch (code) {
    case VP8_ENC_ERROR_OUT_OF_MEMORY:
    case VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY: return "out of memory";
    case VP8_ENC_ERROR_BAD_DIMENSION: return "a side is longer than 16383 pixels";
    case VP8_ENC_ERROR_PARTITION0_OVERFLOW:
    case VP8_ENC_ERROR_PARTITION_OVERFLOW:
    case VP8_ENC_ERROR_FILE_TOO_BIG: return "the result is too large for the format";
    default: return "libwebp refused the image";
    }
}

// Wraps the picture with its metadata into an extended file; releases `picture`.
static uint8_t *with_metadata(const cwebp_encoding *encoding, uint8_t *picture, size_t *count, const char **reason)
{
    WebPData image = { picture, *count }, file = { NULL, 0 };
    WebPData exif = { encoding->exif, encoding->exif_count }, xmp = { encoding->xmp, encoding->xmp_count };
    WebPMux *mux = WebPMuxNew();
    int ok = mux && WebPMuxSetImage(mux, &image, 0) == WEBP_MUX_OK;
    if (ok && exif.bytes) ok = WebPMuxSetChunk(mux, "EXIF", &exif, 0) == WEBP_MUX_OK;
    if (ok && xmp.bytes) ok = WebPMuxSetChunk(mux, "XMP ", &xmp, 0) == WEBP_MUX_OK;
    if (ok) ok = WebPMuxAssemble(mux, &file) == WEBP_MUX_OK;
    WebPMuxDelete(mux);
    WebPFree(picture);
    if (!ok) {
        *reason = "libwebp refused the metadata";
        return NULL;
    }
    *count = file.size;
    return (uint8_t *)file.bytes;
}

uint8_t *cwebp_encode(const cwebp_encoding *encoding, size_t *count, const char **reason)
{
    WebPConfig config;
    WebPPicture picture;
    WebPMemoryWriter writer;
    *reason = "libwebp has another version than its headers";
    if (!WebPConfigInit(&config) || !WebPPictureInit(&picture)) return NULL;
    config.lossless = encoding->lossless;
    config.quality = encoding->quality;
    config.method = encoding->method;
    config.exact = encoding->lossless;  // colours under transparent pixels are pixels too
    picture.use_argb = encoding->lossless;
    picture.width = encoding->width;
    picture.height = encoding->height;
    WebPMemoryWriterInit(&writer);
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &writer;
    int ok = encoding->has_alpha ? WebPPictureImportRGBA(&picture, encoding->rgba, encoding->stride)
                                 : WebPPictureImportRGBX(&picture, encoding->rgba, encoding->stride);
    ok = ok && WebPEncode(&config, &picture);
    *reason = reason_of(picture.error_code);
    WebPPictureFree(&picture);
    if (!ok) {
        WebPMemoryWriterClear(&writer);
        return NULL;
    }
    *count = writer.size;
    if (!encoding->exif && !encoding->xmp) return writer.mem;
    return with_metadata(encoding, writer.mem, count, reason);
}

struct cwebp_animation {
    WebPMux *mux;
};

cwebp_animation *cwebp_animation_create(int width, int height, int plays)
{
    cwebp_animation *animation = calloc(1, sizeof *animation);
    if (!animation) return NULL;
    WebPMuxAnimParams params = { 0, plays };  // the background is transparent
    animation->mux = WebPMuxNew();
    if (animation->mux && WebPMuxSetCanvasSize(animation->mux, width, height) == WEBP_MUX_OK &&
        WebPMuxSetAnimationParams(animation->mux, &params) == WEBP_MUX_OK)
        return animation;
    cwebp_animation_destroy(animation);
    return NULL;
}

int cwebp_animation_add(cwebp_animation *animation, const uint8_t *data, size_t count, int x, int y, int milliseconds)
{
    WebPMuxFrameInfo frame;
    memset(&frame, 0, sizeof frame);
    frame.bitstream.bytes = data;
    frame.bitstream.size = count;
    frame.x_offset = x;
    frame.y_offset = y;
    frame.duration = milliseconds;
    frame.id = WEBP_CHUNK_ANMF;
    frame.dispose_method = WEBP_MUX_DISPOSE_NONE;
    frame.blend_method = WEBP_MUX_NO_BLEND;
    return WebPMuxPushFrame(animation->mux, &frame, 1) == WEBP_MUX_OK;
}

uint8_t *cwebp_animation_finish(cwebp_animation *animation, size_t *count)
{
    WebPData file = { NULL, 0 };
    if (WebPMuxAssemble(animation->mux, &file) != WEBP_MUX_OK) return NULL;
    *count = file.size;
    return (uint8_t *)file.bytes;
}

void cwebp_animation_destroy(cwebp_animation *animation)
{
    if (!animation) return;
    WebPMuxDelete(animation->mux);
    free(animation);
}

void cwebp_free(void *bytes) { WebPFree(bytes); }

int cwebp_version(void) { return WebPGetDecoderVersion(); }

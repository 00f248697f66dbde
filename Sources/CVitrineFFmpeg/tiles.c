// HEVC pictures that stand alone: the tiles of a still picture.
#include "video.h"
#include <errno.h>
#include <limits.h>
#include <string.h>

struct cffmpeg_tiles {
    AVCodecContext *decoder;
    AVPacket *packet;
    AVFrame *frame;
};

static cffmpeg_status failure(int code) {
    if (code == AVERROR(ENOMEM)) return CFFMPEG_MEMORY;
    if (code == AVERROR_PATCHWELCOME || code == AVERROR(ENOSYS)) return CFFMPEG_UNSUPPORTED;
    return CFFMPEG_DAMAGED;
}

static cffmpeg_status open_decoder(cffmpeg_tiles *t, const uint8_t *configuration, size_t count, bool skips_filters,
                                   int64_t max_pixels) {
    const AVCodec *codec = avcodec_find_decoder_by_name("hevc");
    if (!codec) return CFFMPEG_UNSUPPORTED;
    t->packet = av_packet_alloc();
    t->frame = av_frame_alloc();
    AVCodecContext *c = t->decoder = avcodec_alloc_context3(codec);
    if (!t->packet || !t->frame || !c) return CFFMPEG_MEMORY;
    c->extradata = av_mallocz(count + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!c->extradata) return CFFMPEG_MEMORY;
    memcpy(c->extradata, configuration, count);
    c->extradata_size = (int)count;
    c->max_pixels = max_pixels;
    c->thread_count = 1;
    // Windows of the picture may begin at any sample.
    c->flags |= AV_CODEC_FLAG_UNALIGNED;
    // A fault is to be told, not concealed.
    c->err_recognition = AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE;
    // No later picture builds on these, so that nothing adds up.
    if (skips_filters) c->skip_loop_filter = AVDISCARD_ALL;
    int code = avcodec_open2(c, codec, NULL);
    return code < 0 ? failure(code) : CFFMPEG_OK;
}

cffmpeg_status cffmpeg_tiles_open(const uint8_t *configuration, size_t count, bool skips_filters, int64_t max_pixels,
                                  cffmpeg_tiles **out) {
    if (!count || count > 1 << 16) return CFFMPEG_DAMAGED;
    cffmpeg_tiles *t = av_mallocz(sizeof *t);
    if (!t) return CFFMPEG_MEMORY;
    cffmpeg_status status = open_decoder(t, configuration, count, skips_filters, max_pixels);
    if (status == CFFMPEG_OK) {
        *out = t;
        return CFFMPEG_OK;
    }
    cffmpeg_tiles_close(t);
    return status;
}

void cffmpeg_tiles_close(cffmpeg_tiles *t) {
    if (!t) return;
    av_frame_free(&t->frame);
    av_packet_free(&t->packet);
    avcodec_free_context(&t->decoder);
    av_free(t);
}

cffmpeg_status cffmpeg_tiles_decode(cffmpeg_tiles *t, const uint8_t *stream, size_t count, cffmpeg_frame *out) {
    av_frame_unref(t->frame);
    if (!count || count > INT_MAX - AV_INPUT_BUFFER_PADDING_SIZE) return CFFMPEG_DAMAGED;
    int code = av_new_packet(t->packet, (int)count);
    if (code < 0) return failure(code);
    memcpy(t->packet->data, stream, count);
    avcodec_flush_buffers(t->decoder);
    code = avcodec_send_packet(t->decoder, t->packet);
    av_packet_unref(t->packet);
    if (code >= 0) code = avcodec_send_packet(t->decoder, NULL);
    if (code >= 0) code = avcodec_receive_frame(t->decoder, t->frame);
    if (code < 0) return failure(code);
    cffmpeg_describe_frame(t->frame, out);
    return t->frame->key_frame && !out->is_damaged ? CFFMPEG_OK : CFFMPEG_DAMAGED;
}

// Single frames: seeking, decoding, and the planes of what was decoded.
#include "video.h"
#include <errno.h>
#include <math.h>
#include <string.h>

// Packets read for one frame at most: those of other streams, and of a film whose pictures never come.
enum { PACKETS = 20000, LARGEST_SIDE = 32768 };

void cffmpeg_finish(cffmpeg_video *v) {
    sws_freeContext(v->scaler);
    v->scaler = NULL;
    av_frame_free(&v->frame);
    av_frame_free(&v->earlier);
    av_packet_free(&v->packet);
    avcodec_free_context(&v->decoder);
    v->stream = -1;
}

static const AVCodec *find_decoder(const AVCodecParameters *p) {
    const AVCodec *codec = avcodec_find_decoder(p->codec_id);
    return codec && av_match_list(codec->name, cffmpeg_decoders, ',') > 0 ? codec : NULL;
}

static void tune(AVCodecContext *c, const AVCodec *codec, const cffmpeg_decoding *how) {
    c->thread_count = 1;
    if (how->key_frames) {
        c->skip_frame = AVDISCARD_NONKEY;
        c->flags2 |= AV_CODEC_FLAG2_FAST;
    }
    if (how->drops_unneeded) c->skip_frame = AVDISCARD_NONREF;
    // Blocks' edges vanish in the mean of nine pixels. Only where no later frame builds on this one.
    if (how->key_frames && how->reduction >= 3) c->skip_loop_filter = AVDISCARD_ALL;
    // Transforms of a half, a quarter, an eighth. Motion would add up its errors.
    int side = FFMAX(c->width, c->height);
    while ((how->key_frames || how->cover) && how->side > 0 && c->lowres < codec->max_lowres &&
           side >> (c->lowres + 1) >= how->side)
        c->lowres++;
}

cffmpeg_status cffmpeg_begin(cffmpeg_video *v, const cffmpeg_decoding *how) {
    cffmpeg_finish(v);
    v->stream = how->cover ? v->cover : v->film;
    v->key_frames = how->key_frames;
    v->is_draining = v->is_cover_sent = v->read_behind_end = false;
    if (v->stream < 0) return CFFMPEG_NO_VIDEO;
    AVStream *s = v->format->streams[v->stream];
    const AVCodec *codec = find_decoder(s->codecpar);
    if (!codec) return CFFMPEG_UNSUPPORTED;
    if (s->codecpar->width > LARGEST_SIDE || s->codecpar->height > LARGEST_SIDE ||
        (int64_t)s->codecpar->width * s->codecpar->height > v->max_pixels)
        return CFFMPEG_PIXELS;
    for (unsigned i = 0; i < v->format->nb_streams; i++)
        v->format->streams[i]->discard =
            (int)i != v->stream ? AVDISCARD_ALL : how->key_frames ? AVDISCARD_NONKEY : AVDISCARD_DEFAULT;
    v->packet = av_packet_alloc();
    v->frame = av_frame_alloc();
    v->earlier = av_frame_alloc();
    v->decoder = avcodec_alloc_context3(codec);
    if (!v->packet || !v->frame || !v->earlier || !v->decoder) return CFFMPEG_MEMORY;
    int code = avcodec_parameters_to_context(v->decoder, s->codecpar);
    if (code < 0) return cffmpeg_failure(v, code);
    v->decoder->pkt_timebase = s->time_base;
    v->decoder->max_pixels = v->max_pixels;
    tune(v->decoder, codec, how);
    code = avcodec_open2(v->decoder, codec, NULL);
    return code < 0 ? cffmpeg_failure(v, code) : CFFMPEG_OK;
}

static int64_t first_stamp(const AVStream *s) { return s->start_time == AV_NOPTS_VALUE ? 0 : s->start_time; }

// Seconds since the film's first frame as a time stamp; clamped, as streams may count in anything.
static int64_t stamp(const AVStream *s, double second) {
    double units = s->time_base.num > 0 ? second / av_q2d(s->time_base) : 0;
    if (!(fabs(units) < 4e18)) return units > 0 ? INT64_MAX / 2 : 0;
    // Down: between two units the earlier frame is seen. A little more, for tenths that binary fractions miss.
    return av_sat_add64(first_stamp(s), (int64_t)floor(units + 1e-6));
}

// Entries of a stream's index, or NULL.
#if LIBAVFORMAT_VERSION_MAJOR < 59
static const AVIndexEntry *entry(AVStream *s, int i) {
    return i >= 0 && i < s->nb_index_entries ? &s->index_entries[i] : NULL;
}
static const AVIndexEntry *entry_at(AVStream *s, int64_t time, int flags) {
    return entry(s, av_index_search_timestamp(s, time, flags));
}
#else
static const AVIndexEntry *entry(AVStream *s, int i) { return avformat_index_get_entry(s, i); }
static const AVIndexEntry *entry_at(AVStream *s, int64_t time, int flags) {
    return avformat_index_get_entry_from_timestamp(s, time, flags);
}
#endif

// A time stamp that leads to the key frame after `wanted`, where the index knows of one that is nearer than the one
// before; or AV_NOPTS_VALUE.
static int64_t nearer_key_frame(AVStream *s, int64_t wanted) {
    const AVIndexEntry *first = entry(s, 0);
    if (!first) return AV_NOPTS_VALUE;
    // An index may count in the order of decoding, which begins some frames before the first one is seen.
    int64_t ahead = av_sat_sub64(first_stamp(s), first->timestamp);
    if (ahead < 0 || av_rescale_q(ahead, s->time_base, AV_TIME_BASE_Q) > AV_TIME_BASE) ahead = 0;
    int64_t place = av_sat_sub64(wanted, ahead);
    const AVIndexEntry *before = entry_at(s, place, AVSEEK_FLAG_BACKWARD);
    const AVIndexEntry *after = entry_at(s, place, 0);
    if (!before || !after || !(after->flags & AVINDEX_KEYFRAME)) return AV_NOPTS_VALUE;
    int64_t late = av_sat_sub64(after->timestamp, place);
    if (late <= 0 || late >= av_sat_sub64(place, before->timestamp)) return AV_NOPTS_VALUE;
    // As late as possible before the next one: containers compare with the time it is seen, not with the index.
    const AVIndexEntry *next = entry_at(s, av_sat_add64(after->timestamp, 1), 0);
    if (next && next->timestamp > after->timestamp) return next->timestamp - 1;
    return av_sat_add64(after->timestamp, av_rescale_q(10 * (int64_t)AV_TIME_BASE, AV_TIME_BASE_Q, s->time_base));
}

bool cffmpeg_seek(cffmpeg_video *v, double second, bool nearest) {
    if (v->stream < 0 || v->stream == v->cover) return true;
    AVStream *s = v->format->streams[v->stream];
    int64_t wanted = stamp(s, second);
    v->is_draining = false;
    int code = -1;
    // Where time counts in the order of decoding, the first key frame lies before its own time.
    if (second <= 0) {
        int64_t margin = av_rescale_q(10 * (int64_t)AV_TIME_BASE, AV_TIME_BASE_Q, s->time_base);
        code = av_seek_frame(v->format, v->stream, av_sat_sub64(wanted, margin), AVSEEK_FLAG_BACKWARD);
    }
    if (code < 0) code = av_seek_frame(v->format, v->stream, wanted, AVSEEK_FLAG_BACKWARD);
    int64_t later = nearest ? nearer_key_frame(s, wanted) : AV_NOPTS_VALUE;
    if (code >= 0 && later != AV_NOPTS_VALUE) av_seek_frame(v->format, v->stream, later, AVSEEK_FLAG_BACKWARD);
    if (code < 0) code = avformat_seek_file(v->format, v->stream, INT64_MIN, wanted, wanted, 0);
    avcodec_flush_buffers(v->decoder);
    av_frame_unref(v->earlier);
    av_frame_unref(v->frame);
    return code >= 0;
}

// Gives the decoder one more packet, or tells it that there are no more. False when it will not take any.
static bool feed(cffmpeg_video *v) {
    if (v->is_draining) return false;
    if (v->stream == v->cover) {
        if (!v->is_cover_sent) {
            v->is_cover_sent = true;
            return avcodec_send_packet(v->decoder, &v->format->streams[v->stream]->attached_pic) >= 0;
        }
    } else {
        for (int i = 0; i < PACKETS && !cffmpeg_interrupted(v); i++) {
            if (av_read_frame(v->format, v->packet) < 0) break;
            bool is_ours = v->packet->stream_index == v->stream &&
                           (!v->key_frames || v->packet->flags & AV_PKT_FLAG_KEY);
            // What a decoder refuses is skipped: the next packet may do.
            if (is_ours) avcodec_send_packet(v->decoder, v->packet);
            av_packet_unref(v->packet);
            if (is_ours) return true;
        }
    }
    v->is_draining = true;
    return avcodec_send_packet(v->decoder, NULL) >= 0;
}

static void set_planes(cffmpeg_frame *out, const AVFrame *f) {
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(f->format);
    if (!d) return;
    uint64_t without = AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_HWACCEL |
                       AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_BAYER | AV_PIX_FMT_FLAG_FLOAT;
    if (d->flags & without || d->nb_components == 2 || f->format == AV_PIX_FMT_XYZ12) return;
    int words = d->comp[0].depth > 8;
#if AV_HAVE_BIGENDIAN
    if (words && !(d->flags & AV_PIX_FMT_FLAG_BE)) return;
#else
    if (words && d->flags & AV_PIX_FMT_FLAG_BE) return;
#endif
    for (int i = 0; i < d->nb_components; i++) {
        const AVComponentDescriptor *c = &d->comp[i];
        if (c->plane != i || c->offset || c->step != 1 + words || c->depth != d->comp[0].depth ||
            c->shift != d->comp[0].shift || c->depth > 16 || !f->data[i])
            return;
    }
    for (int i = 0; i < d->nb_components; i++) {
        out->planes[i] = f->data[i];
        out->strides[i] = f->linesize[i];
    }
    out->plane_count = d->nb_components;
    out->depth = d->comp[0].depth;
    out->shift = d->comp[0].shift;
    out->chroma_shift_x = d->log2_chroma_w;
    out->chroma_shift_y = d->log2_chroma_h;
    out->chroma_width = AV_CEIL_RSHIFT(f->width, d->log2_chroma_w);
    out->chroma_height = AV_CEIL_RSHIFT(f->height, d->log2_chroma_h);
}

static bool is_full_range(const AVFrame *f) {
    switch (f->format) {
    case AV_PIX_FMT_YUVJ420P: case AV_PIX_FMT_YUVJ422P: case AV_PIX_FMT_YUVJ444P: case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ411P:
        return true;
    default: return f->color_range == AVCOL_RANGE_JPEG;
    }
}

static void describe_frame(const AVFrame *f, cffmpeg_frame *out) {
    memset(out, 0, sizeof *out);
    out->full_width = out->width = f->width;
    out->full_height = out->height = f->height;
    set_planes(out, f);
    out->full_range = is_full_range(f);
    out->matrix = f->colorspace;
    out->primaries = f->color_primaries;
    out->transfer = f->color_trc;
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    out->is_interlaced = (f->flags & AV_FRAME_FLAG_INTERLACED) != 0;
#else
    out->is_interlaced = f->interlaced_frame;
#endif
    out->is_damaged = f->decode_error_flags || f->flags & AV_FRAME_FLAG_CORRUPT;
    out->second = NAN;
}

static void describe(cffmpeg_video *v, cffmpeg_frame *out) {
    const AVFrame *f = v->frame;
    AVStream *s = v->format->streams[v->stream];
    describe_frame(f, out);
    int lowres = v->decoder->lowres, width = s->codecpar->width, height = s->codecpar->height;
    bool agrees = AV_CEIL_RSHIFT(width, lowres) == f->width && AV_CEIL_RSHIFT(height, lowres) == f->height;
    out->full_width = agrees ? width : f->width << lowres;
    out->full_height = agrees ? height : f->height << lowres;
    AVRational shape = av_guess_sample_aspect_ratio(v->format, s, v->frame);
    out->sar_num = shape.num;
    out->sar_den = shape.den;
    if (f->best_effort_timestamp != AV_NOPTS_VALUE)
        out->second = (double)av_sat_sub64(f->best_effort_timestamp, first_stamp(s)) * av_q2d(s->time_base);
}

// Whether the frame that is seen at `second` may still be to come.
static bool is_before(const cffmpeg_video *v, double second) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
    int64_t lasts = v->frame->duration;
#else
    int64_t lasts = v->frame->pkt_duration;
#endif
    int64_t at = v->frame->best_effort_timestamp;
    if (at == AV_NOPTS_VALUE) return false;
    int64_t wanted = stamp(v->format->streams[v->stream], second);
    return at < wanted && (lasts <= 0 || av_sat_add64(at, lasts) <= wanted);
}

cffmpeg_status cffmpeg_next(cffmpeg_video *v, double second, int32_t budget, cffmpeg_frame *out) {
    if (!v->decoder) return CFFMPEG_NO_VIDEO;
    av_frame_unref(v->earlier);
    while (!cffmpeg_interrupted(v)) {
        av_frame_unref(v->frame);
        int code = avcodec_receive_frame(v->decoder, v->frame);
        if (code == AVERROR(EAGAIN)) {
            // A decoder that refuses the end of the film would ask for more for ever.
            if (feed(v)) continue;
            code = AVERROR_EOF;
        }
        if (code == AVERROR(ENOMEM)) return CFFMPEG_MEMORY;
        if (code == AVERROR_EOF || (code < 0 && v->is_draining)) {
            // Only where an index says how far frames reach is looking behind the end a fault.
            bool is_cut = v->read_behind_end && av_match_name("mp4", v->format->iformat->name);
            if (!v->earlier->width) return is_cut ? CFFMPEG_TRUNCATED : CFFMPEG_END;
            av_frame_move_ref(v->frame, v->earlier);
            break;
        }
        if (code < 0) continue;
        if ((int64_t)v->frame->width * v->frame->height > v->max_pixels) return CFFMPEG_PIXELS;
        if (isnan(second) || --budget <= 0) break;
        if (is_before(v, second)) {
            av_frame_unref(v->earlier);
            av_frame_move_ref(v->earlier, v->frame);
            continue;
        }
        // What is seen at `second` is the one before when this one begins later.
        int64_t at = v->frame->best_effort_timestamp;
        if (v->earlier->width && at != AV_NOPTS_VALUE && at > stamp(v->format->streams[v->stream], second)) {
            av_frame_unref(v->frame);
            av_frame_move_ref(v->frame, v->earlier);
        }
        break;
    }
    if (!v->frame->width || !v->frame->height) return cffmpeg_interrupted(v) ? CFFMPEG_TIMED_OUT : CFFMPEG_END;
    describe(v, out);
    return CFFMPEG_OK;
}

cffmpeg_status cffmpeg_rgb(cffmpeg_video *v, int32_t width, int32_t height, uint8_t *pixels) {
    const AVFrame *f = v->frame;
    if (!f || !f->width) return CFFMPEG_END;
    sws_freeContext(v->scaler);
    v->scaler = sws_getContext(f->width, f->height, f->format, width, height, AV_PIX_FMT_RGB24,
                               SWS_AREA | SWS_ACCURATE_RND, NULL, NULL, NULL);
    if (!v->scaler) return CFFMPEG_UNSUPPORTED;
    const int *rows = sws_getCoefficients(f->colorspace == AVCOL_SPC_BT709 ? SWS_CS_ITU709 : SWS_CS_ITU601);
    sws_setColorspaceDetails(v->scaler, rows, is_full_range(f), sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16,
                             1 << 16);
    // Its loops write whole vectors: the last row gets room of its own.
    size_t stride = ((size_t)width * 3 + 63) & ~(size_t)63;
    uint8_t *rgb = av_malloc(stride * (size_t)height + 64);
    if (!rgb) return CFFMPEG_MEMORY;
    uint8_t *to[4] = {rgb};
    int strides[4] = {(int)stride};
    int done = sws_scale(v->scaler, (const uint8_t *const *)f->data, f->linesize, 0, f->height, to, strides);
    size_t row = (size_t)width * 3;
    for (size_t y = 0; y < (size_t)height; y++) memcpy(pixels + y * row, rgb + y * stride, row);
    av_free(rgb);
    return done > 0 ? CFFMPEG_OK : CFFMPEG_DAMAGED;
}

// Input through a descriptor, the containers and codecs that are read, and what a film tells about itself.
#include "video.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Containers of the field, those of sound only included so that they can be told from what is no video. No playlists.
static const char containers[] =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,ogg,asf,mxf,dv,ivf,rm,nut,gxf,"
    "wav,mp3,flac,aac,ac3,aiff,amr,caf,w64,ape,wv,tta,mpc,mpc8,tak,dsf";

const char cffmpeg_decoders[] =
    "h264,hevc,vp8,vp9,libdav1d,mpeg1video,mpeg2video,mpegvideo,mpeg4,msmpeg4,msmpeg4v1,msmpeg4v2,h263,h263p,h261,flv,"
    "wmv1,wmv2,wmv3,vc1,theora,mjpeg,mjpegb,png,prores,dnxhd,dvvideo,ffv1,huffyuv,ffvhuff,utvideo,rawvideo,v210,"
    "cinepak,svq1,svq3,rv10,rv20,rv30,rv40,vp6,vp6f,vp6a,msvideo1,indeo3,qtrle,rpza,cfhd,jpeg2000";

// Bytes that may tell the container, and that are searched for streams that its header does not describe.
enum { CONTAINER_BYTES = 1 << 20, STREAM_BYTES = 2 << 20, BUFFER_BYTES = 32 << 10, STREAMS = 64 };

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int cffmpeg_interrupted(void *video) {
    const cffmpeg_video *v = video;
    // Processor time too: a busy machine is no fault of the film.
    return v->deadline && now(CLOCK_MONOTONIC) >= v->deadline && now(CLOCK_PROCESS_CPUTIME_ID) >= v->work_deadline;
}

void cffmpeg_set_deadline(cffmpeg_video *v, int64_t milliseconds) {
    v->deadline = milliseconds > 0 ? now(CLOCK_MONOTONIC) + milliseconds : 0;
    v->work_deadline = milliseconds > 0 ? now(CLOCK_PROCESS_CPUTIME_ID) + milliseconds : 0;
}

cffmpeg_status cffmpeg_failure(cffmpeg_video *v, int code) {
    if (cffmpeg_interrupted(v)) return CFFMPEG_TIMED_OUT;
    if (code == AVERROR(ENOMEM)) return CFFMPEG_MEMORY;
    if (code == AVERROR_DECODER_NOT_FOUND || code == AVERROR_PATCHWELCOME) return CFFMPEG_UNSUPPORTED;
    return v->read_behind_end ? CFFMPEG_TRUNCATED : CFFMPEG_DAMAGED;
}

void cffmpeg_start(void) { av_log_set_level(AV_LOG_QUIET); }

static int read_bytes(void *video, uint8_t *bytes, int count) {
    cffmpeg_video *v = video;
    if (cffmpeg_interrupted(v)) return AVERROR_EXIT;
    for (;;) {
        ssize_t n = pread(v->fd, bytes, (size_t)count, v->position);
        if (n > 0) {
            v->position += n;
            return (int)n;
        }
        if (n == 0) {
            v->read_behind_end = true;
            return AVERROR_EOF;
        }
        if (errno != EINTR) return AVERROR(errno);
    }
}

static int64_t seek(void *video, int64_t offset, int whence) {
    cffmpeg_video *v = video;
    int64_t base = 0;
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE: return v->size;
    case SEEK_SET: break;
    case SEEK_CUR: base = v->position; break;
    case SEEK_END: base = v->size; break;
    default: return AVERROR(EINVAL);
    }
    if (offset < -base || offset > INT64_MAX - base) return AVERROR(EINVAL);
    return v->position = base + offset;
}

static int open_nothing(AVFormatContext *format, AVIOContext **io, const char *url, int flags, AVDictionary **options) {
    (void)format; (void)io; (void)url; (void)flags; (void)options;
    return AVERROR(EACCES);
}

static bool is_listed(const char *names, const char *list) {
    return names && av_match_list(names, list, ',') > 0;
}

// Whether the header says enough. Looking for more decodes frames, which costs as much as the thumbnail.
static bool is_described(const AVFormatContext *f) {
    if (f->ctx_flags & AVFMTCTX_NOHEADER || !f->nb_streams) return false;
    for (unsigned i = 0; i < f->nb_streams; i++) {
        const AVCodecParameters *p = f->streams[i]->codecpar;
        if (p->codec_type != AVMEDIA_TYPE_VIDEO) continue;
        if (p->codec_id == AV_CODEC_ID_NONE || p->width <= 0 || p->height <= 0) return false;
    }
    return true;
}

static void choose_streams(cffmpeg_video *v) {
    AVFormatContext *f = v->format;
    int64_t best = -1;
    v->film = v->cover = v->sound = -1;
    for (unsigned i = 0; i < f->nb_streams; i++) {
        const AVStream *s = f->streams[i];
        const AVCodecParameters *p = s->codecpar;
        if (p->codec_type == AVMEDIA_TYPE_AUDIO && v->sound < 0) v->sound = (int)i;
        if (p->codec_type != AVMEDIA_TYPE_VIDEO) continue;
        if (s->disposition & (AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS)) {
            if (v->cover < 0 && s->attached_pic.size > 0) v->cover = (int)i;
            continue;
        }
        int64_t area = (int64_t)p->width * p->height;
        if (s->disposition & AV_DISPOSITION_DEFAULT) area += (int64_t)1 << 62;
        if (area > best) {
            best = area;
            v->film = (int)i;
        }
    }
}

static cffmpeg_status open_container(cffmpeg_video *v, bool is_recording) {
    uint8_t *buffer = av_malloc(BUFFER_BYTES);
    if (!buffer) return CFFMPEG_MEMORY;
    v->io = avio_alloc_context(buffer, BUFFER_BYTES, 0, v, read_bytes, NULL, seek);
    if (!v->io) {
        av_free(buffer);
        return CFFMPEG_MEMORY;
    }
    cffmpeg_input *input = NULL;
    int score = av_probe_input_buffer2(v->io, &input, "", NULL, 0, CONTAINER_BYTES);
    if (cffmpeg_interrupted(v)) return CFFMPEG_TIMED_OUT;
    if (score < 0 || !input || !is_listed(input->name, containers)) return CFFMPEG_NOT_A_VIDEO;
    v->read_behind_end = false;

    AVFormatContext *f = avformat_alloc_context();
    if (!f) return CFFMPEG_MEMORY;
    f->pb = v->io;
    f->flags |= AVFMT_FLAG_CUSTOM_IO;
    f->io_open = open_nothing;
    f->interrupt_callback = (AVIOInterruptCB){cffmpeg_interrupted, v};
    f->max_streams = STREAMS;
    f->probesize = STREAM_BYTES;
    f->max_analyze_duration = 2 * AV_TIME_BASE;
    f->max_ts_probe = 20;
    f->codec_whitelist = av_strdup(cffmpeg_decoders);
    f->protocol_whitelist = av_strdup("none");
    int code = avformat_open_input(&f, "", input, NULL);
    if (code < 0) {
        v->read_behind_end |= v->io->eof_reached || avio_seek(v->io, 0, SEEK_CUR) >= v->size;
        // A weak resemblance is none: sound without a header begins like many a text.
        return score <= AVPROBE_SCORE_RETRY ? CFFMPEG_NOT_A_VIDEO : cffmpeg_failure(v, code);
    }
    v->format = f;
    if (!is_described(f)) {
        avformat_find_stream_info(f, NULL);
        if (cffmpeg_interrupted(v)) return CFFMPEG_TIMED_OUT;
    }
    choose_streams(v);
    if (v->film < 0 && v->cover < 0 && score <= AVPROBE_SCORE_RETRY && !is_recording) return CFFMPEG_NOT_A_VIDEO;
    return CFFMPEG_OK;
}

cffmpeg_status cffmpeg_open(int fd, int64_t size, int64_t max_pixels, int64_t deadline, bool is_recording,
                            cffmpeg_video **out) {
    cffmpeg_video *v = av_mallocz(sizeof *v);
    if (!v) return CFFMPEG_MEMORY;
    v->fd = fd;
    v->size = size;
    v->max_pixels = max_pixels;
    v->film = v->cover = v->sound = v->stream = -1;
    cffmpeg_set_deadline(v, deadline);
    cffmpeg_status status = open_container(v, is_recording);
    if (status == CFFMPEG_OK) {
        *out = v;
        return CFFMPEG_OK;
    }
    cffmpeg_close(v);
    return status;
}

void cffmpeg_close(cffmpeg_video *v) {
    if (!v) return;
    cffmpeg_finish(v);
    avformat_close_input(&v->format);
    if (v->io) {
        av_freep(&v->io->buffer);
        avio_context_free(&v->io);
    }
    av_free(v);
}

static void copy(char *to, size_t size, const char *from) { snprintf(to, size, "%s", from ? from : ""); }

// The orientation of a display matrix: 16.16 numbers a, b in the first row and c, d in the second, where a point
// (x, y) goes to (ax + cy, bx + dy) (ISO/IEC 14496-12, 8.2.2). Angles that are no quarter turns are taken as none.
static int orientation(const int32_t *m) {
    int64_t a = m[0], b = m[1], c = m[3], d = m[4];
    if (a && d && !b && !c) return a > 0 ? (d > 0 ? 1 : 4) : (d > 0 ? 2 : 3);
    if (b && c && !a && !d) return b > 0 ? (c > 0 ? 5 : 6) : (c > 0 ? 8 : 7);
    double angle = av_display_rotation_get(m);
    if (!isfinite(angle)) return 1;
    long turns = lrint(-angle / 90);
    static const int upright[4] = {1, 6, 3, 8};
    return fabs(-angle - 90.0 * (double)turns) < 1 ? upright[(turns % 4 + 4) % 4] : 1;
}

// The matrix that turns a frame for display, or NULL. Foreign data: `size` may be anything.
static const uint8_t *display_matrix(const AVStream *s, size_t *size) {
#ifdef CFFMPEG_HAS_CODED_SIDE_DATA
    const AVPacketSideData *data = av_packet_side_data_get(
        s->codecpar->coded_side_data, s->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    *size = data ? data->size : 0;
    return data ? data->data : NULL;
#else
    cffmpeg_size bytes = 0;
    const uint8_t *data = av_stream_get_side_data(s, AV_PKT_DATA_DISPLAYMATRIX, &bytes);
    *size = bytes > 0 ? (size_t)bytes : 0;
    return data;
#endif
}

// The seconds of a stream; 0 if it does not tell.
static double length(const AVStream *s) {
    if (s->duration <= 0 || s->time_base.num <= 0 || s->time_base.den <= 0) return 0;
    double seconds = (double)s->duration * av_q2d(s->time_base);
    return isfinite(seconds) && seconds > 0 ? seconds : 0;
}

void cffmpeg_describe(cffmpeg_video *v, cffmpeg_description *d) {
    memset(d, 0, sizeof *d);
    AVFormatContext *f = v->format;
    d->has_video = v->film >= 0;
    d->has_audio = v->sound >= 0;
    d->has_cover = v->cover >= 0;
    d->orientation = 1;
    copy(d->container, sizeof d->container, f->iformat->name);
    if (v->sound >= 0)
        copy(d->audio_codec, sizeof d->audio_codec, avcodec_get_name(f->streams[v->sound]->codecpar->codec_id));
    const AVDictionaryEntry *created = av_dict_get(f->metadata, "creation_time", NULL, 0);
    if (f->duration > 0) d->duration = (double)f->duration / AV_TIME_BASE;
    // FFmpeg 7 leaves the length of a file with sound alone to its stream.
    else if (v->sound >= 0) d->duration = length(f->streams[v->sound]);
    if (v->film >= 0) {
        AVStream *s = f->streams[v->film];
        copy(d->video_codec, sizeof d->video_codec, avcodec_get_name(s->codecpar->codec_id));
        d->width = s->codecpar->width;
        d->height = s->codecpar->height;
        AVRational shape = av_guess_sample_aspect_ratio(f, s, NULL);
        if (shape.num > 0 && shape.den > 0) {
            d->sar_num = shape.num;
            d->sar_den = shape.den;
        }
        size_t size = 0;
        const uint8_t *matrix = display_matrix(s, &size);
        if (matrix && size >= 9 * sizeof(int32_t)) {
            int32_t values[9];
            memcpy(values, matrix, sizeof values);
            d->orientation = orientation(values);
        }
        AVRational rate = av_guess_frame_rate(f, s, NULL);
        if (rate.num > 0 && rate.den > 0) d->frame_rate = av_q2d(rate);
        // Sound may go on for longer than the pictures do.
        double own = length(s);
        if (own > 0) d->duration = own;
        if (!created) created = av_dict_get(s->metadata, "creation_time", NULL, 0);
    }
    if (!isfinite(d->duration) || d->duration < 0) d->duration = 0;
    if (created) copy(d->created, sizeof d->created, created->value);
}

const char *cffmpeg_version(void) { return av_version_info(); }

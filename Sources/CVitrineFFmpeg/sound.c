// The loudness of sound at equal intervals, for waveforms.
#include "video.h"
#include <libavutil/avstring.h>
#include <libavutil/samplefmt.h>
#include <math.h>
#include <string.h>

// Formats of sound in the containers that are read. Where there are two decoders of one, FFmpeg prefers the one named.
static const char decoders[] =
    "mp3float,mp3,mp2float,mp2,mp1float,mp1,aac,aac_latm,ac3,eac3,flac,alac,vorbis,opus,speex,wmav1,"
    "wmav2,wmapro,wmalossless,ape,wavpack,tta,tak,mpc7,mpc8,dsd_lsbf,dsd_msbf,dsd_lsbf_planar,dsd_msbf_planar,"
    "amrnb,amrwb,cook,ra_144,ra_288,gsm,gsm_ms,adpcm_ms,adpcm_ima_wav,adpcm_ima_qt,adpcm_swf,adpcm_yamaha,nellymoser,"
    "pcm_s8,pcm_u8,pcm_s16le,pcm_s16be,pcm_u16le,pcm_u16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,pcm_f32le,pcm_f32be,"
    "pcm_f64le,pcm_f64be,pcm_alaw,pcm_mulaw,pcm_dvd,pcm_bluray,pcm_s16le_planar,pcm_s16be_planar,pcm_s8_planar,"
    "pcm_s24le_planar,pcm_s32le_planar";

// The most packets that are read, samples a second that are believed, and channels that are looked at.
enum { PACKETS = 200000, RATE = 384000, CHANNELS = 64 };

// Intervals of one length, which doubles each time that all are used.
typedef struct {
    double squares[CFFMPEG_INTERVALS];
    float peaks[CFFMPEG_INTERVALS];
    int count;                // complete intervals
    int64_t length;           // samples of an interval
    int64_t filled;           // samples of the interval that is not complete
    double square;
    float peak;
} intervals;

static void end_interval(intervals *n) {
    n->squares[n->count] = n->square / (double)n->filled;
    n->peaks[n->count++] = n->peak;
    n->filled = 0;
    n->square = 0;
    n->peak = 0;
    if (n->count < CFFMPEG_INTERVALS) return;
    n->count /= 2;
    n->length *= 2;
    for (int i = 0; i < n->count; i++) {
        n->squares[i] = (n->squares[2 * i] + n->squares[2 * i + 1]) / 2;
        n->peaks[i] = fmaxf(n->peaks[2 * i], n->peaks[2 * i + 1]);
    }
}

// A sample from -1 to 1. Decoders of floats may give anything.
static float sample(const uint8_t *data, enum AVSampleFormat format, int64_t i) {
    double value = 0;
    switch (format) {
    case AV_SAMPLE_FMT_U8: value = (data[i] - 128) / 128.0; break;
    case AV_SAMPLE_FMT_S16: value = ((const int16_t *)data)[i] / 32768.0; break;
    case AV_SAMPLE_FMT_S32: value = ((const int32_t *)data)[i] / 2147483648.0; break;
    case AV_SAMPLE_FMT_S64: value = (double)((const int64_t *)data)[i] / 9223372036854775808.0; break;
    case AV_SAMPLE_FMT_FLT: value = ((const float *)data)[i]; break;
    case AV_SAMPLE_FMT_DBL: value = ((const double *)data)[i]; break;
    default: break;
    }
    return isfinite(value) ? (float)fmin(fmax(value, -16), 16) : 0;
}

// Adds a frame. False when its samples are of no kind that is read.
static bool add(intervals *n, const AVFrame *f, int64_t *rest) {
    enum AVSampleFormat format = f->format;
    bool is_planar = av_sample_fmt_is_planar(format) > 0;
    enum AVSampleFormat packed = av_get_packed_sample_fmt(format);
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 24, 100)
    int stride = f->ch_layout.nb_channels;
#else
    int stride = f->channels;
#endif
    int channels = FFMIN(stride, CHANNELS);
    if (packed == AV_SAMPLE_FMT_NONE || channels <= 0 || !f->extended_data) return false;
    for (int64_t i = 0; i < f->nb_samples && *rest > 0; i++, (*rest)--) {
        for (int c = 0; c < channels; c++) {
            float value = is_planar ? sample(f->extended_data[c], packed, i)
                                    : sample(f->extended_data[0], packed, i * stride + c);
            n->peak = fmaxf(n->peak, fabsf(value));
            n->square += (double)value * value / channels;
        }
        if (++n->filled == n->length) end_interval(n);
    }
    return true;
}

static cffmpeg_status decode(cffmpeg_video *v, double seconds, intervals *n) {
    int64_t rest = -1;
    bool is_draining = false;
    for (int packets = 0; rest != 0;) {
        if (cffmpeg_interrupted(v)) return CFFMPEG_TIMED_OUT;
        av_frame_unref(v->frame);
        int code = avcodec_receive_frame(v->decoder, v->frame);
        if (code == AVERROR(ENOMEM)) return CFFMPEG_MEMORY;
        if (code >= 0) {
            // The rate of the first frame counts for all.
            if (rest < 0) rest = (int64_t)fmax(1, seconds * FFMIN(FFMAX(v->frame->sample_rate, 1), RATE));
            if (!add(n, v->frame, &rest)) return CFFMPEG_UNSUPPORTED;
            continue;
        }
        if (is_draining) break;
        bool is_sent = false;
        while (!is_sent && packets++ < PACKETS && !cffmpeg_interrupted(v) && av_read_frame(v->format, v->packet) >= 0) {
            is_sent = v->packet->stream_index == v->stream;
            // What a decoder refuses is skipped: the next packet may do.
            if (is_sent) avcodec_send_packet(v->decoder, v->packet);
            av_packet_unref(v->packet);
        }
        if (is_sent) continue;
        is_draining = true;
        if (avcodec_send_packet(v->decoder, NULL) < 0) break;
    }
    return CFFMPEG_OK;
}

static const AVCodec *find_decoder(enum AVCodecID id) {
    const AVCodec *codec = avcodec_find_decoder(id);
    return codec && av_match_list(codec->name, decoders, ',') > 0 ? codec : NULL;
}

static cffmpeg_status open_decoder(cffmpeg_video *v) {
    AVStream *s = v->format->streams[v->sound];
    const AVCodec *codec = find_decoder(s->codecpar->codec_id);
    if (!codec) return CFFMPEG_UNSUPPORTED;
    for (unsigned i = 0; i < v->format->nb_streams; i++)
        v->format->streams[i]->discard = (int)i != v->sound ? AVDISCARD_ALL : AVDISCARD_DEFAULT;
    v->packet = av_packet_alloc();
    v->frame = av_frame_alloc();
    v->decoder = avcodec_alloc_context3(codec);
    if (!v->packet || !v->frame || !v->decoder) return CFFMPEG_MEMORY;
    int code = avcodec_parameters_to_context(v->decoder, s->codecpar);
    if (code < 0) return cffmpeg_failure(v, code);
    v->decoder->pkt_timebase = s->time_base;
    v->decoder->thread_count = 1;
    code = avcodec_open2(v->decoder, codec, NULL);
    return code < 0 ? cffmpeg_failure(v, code) : CFFMPEG_OK;
}

cffmpeg_status cffmpeg_listen(cffmpeg_video *v, double seconds, float *peaks, float *squares, int32_t *count) {
    cffmpeg_finish(v);
    v->read_behind_end = false;
    *count = 0;
    if (v->sound < 0) return CFFMPEG_NO_VIDEO;
    v->stream = v->sound;
    cffmpeg_status status = open_decoder(v);
    if (status != CFFMPEG_OK) return status;
    intervals *n = av_mallocz(sizeof *n);
    if (!n) return CFFMPEG_MEMORY;
    n->length = 1;
    status = decode(v, seconds, n);
    if (status == CFFMPEG_OK && !n->count) status = v->read_behind_end ? CFFMPEG_TRUNCATED : CFFMPEG_DAMAGED;
    if (status == CFFMPEG_OK) *count = n->count;
    for (int i = 0; i < *count; i++) {
        peaks[i] = n->peaks[i];
        squares[i] = (float)n->squares[i];
    }
    av_free(n);
    return status;
}

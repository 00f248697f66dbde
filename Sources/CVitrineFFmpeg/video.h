// What the parts of the shim share.
#pragma once
#include "cffmpeg.h"
#if !__has_include(<libavformat/avformat.h>)
#error "libavformat/avformat.h is missing. Install libavformat-dev, libavcodec-dev and libswscale-dev (Debian and Ubuntu) or ffmpeg (brew)."
#endif
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libavutil/samplefmt.h>
#include <libswscale/swscale.h>

#if LIBAVFORMAT_VERSION_INT < AV_VERSION_INT(58, 76, 100)
#error "FFmpeg 4.4 or later is needed. Install a newer libavformat-dev, libavcodec-dev and libswscale-dev (Debian and Ubuntu) or ffmpeg (brew)."
#endif

// The functions of FFmpeg 4.4 take formats and sizes of other types than those of 5.0.
#if LIBAVFORMAT_VERSION_MAJOR < 59
typedef AVInputFormat cffmpeg_input;
typedef int cffmpeg_size;
#else
typedef const AVInputFormat cffmpeg_input;
typedef size_t cffmpeg_size;
#endif

// FFmpeg 6.1 keeps side data of a stream in its parameters, and 7.0 has no function of the stream any more.
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
#define CFFMPEG_HAS_CODED_SIDE_DATA 1
#endif

struct cffmpeg_video {
    int fd;
    int64_t size, position;
    bool read_behind_end; // something was looked for where the file has ended
    int64_t deadline;     // milliseconds of the monotonic clock; 0 for none
    int64_t work_deadline; // milliseconds of processor time of the process
    int64_t max_pixels;
    AVIOContext *io;
    AVFormatContext *format;
    int film, cover, sound; // streams, or -1
    // The series of frames.
    int stream;
    bool key_frames, is_draining, is_cover_sent;
    AVCodecContext *decoder;
    AVPacket *packet;
    AVFrame *frame, *earlier;
    struct SwsContext *scaler;
};

// The deadline has passed.
int cffmpeg_interrupted(void *video);
// A status for what the libraries answered.
cffmpeg_status cffmpeg_failure(cffmpeg_video *, int code);
// The decoders of foreign streams, by name.
extern const char cffmpeg_decoders[];

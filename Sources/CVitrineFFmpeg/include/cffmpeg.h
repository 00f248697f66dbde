// libavformat, libavcodec and libswscale behind plain types: what a video holds, and single frames of it. For one
// thread. Nothing is opened by name: containers that refer to other files or addresses find none.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    CFFMPEG_OK = 0,
    CFFMPEG_NOT_A_VIDEO, // no container that is read here
    CFFMPEG_NO_VIDEO,    // sound, subtitles, or nothing
    CFFMPEG_UNSUPPORTED, // a codec that is not read here
    CFFMPEG_DAMAGED,
    CFFMPEG_TRUNCATED,   // damaged, and something lies behind the end of the file
    CFFMPEG_PIXELS,
    CFFMPEG_MEMORY,
    CFFMPEG_TIMED_OUT,
    CFFMPEG_END          // no more frames
} cffmpeg_status;

typedef struct cffmpeg_video cffmpeg_video;

// Silences the libraries, as they would write to stderr. Call it first.
void cffmpeg_start(void);

// Opens the `size` bytes of `fd`, which are read by pread and must stay open until cffmpeg_close(). Work after this and
// every later call ends `deadline` milliseconds of the process's own time after cffmpeg_set_deadline() was called last,
// and not before as much time has passed; 0 is no deadline. Where it is known that the file `is_recording`, a weak
// resemblance to a container of sound suffices.
cffmpeg_status cffmpeg_open(int fd, int64_t size, int64_t max_pixels, int64_t deadline, bool is_recording,
                            cffmpeg_video **);
void cffmpeg_close(cffmpeg_video *);
void cffmpeg_set_deadline(cffmpeg_video *, int64_t milliseconds);

typedef struct {
    double duration;              // seconds; 0 when the container does not tell
    bool has_video, has_audio, has_cover;
    int32_t width, height;        // pixels as stored
    int32_t sar_num, sar_den;     // shape of a pixel; 0 when unknown
    int32_t orientation;          // as in Exif, 1 to 8
    double frame_rate;            // 0 when unknown
    char container[64], video_codec[32], audio_codec[32], created[40];
} cffmpeg_description;

void cffmpeg_describe(cffmpeg_video *, cffmpeg_description *);

typedef struct {
    bool cover;            // the attached picture, not the film
    bool key_frames;       // decode no others
    bool drops_unneeded;   // leave out frames that no other builds on, where the codec has such
    int32_t side;          // pixels that the longer side of frames must keep; 0 for all
    int32_t reduction;     // how much smaller than the frame its picture will be, rounded down
} cffmpeg_decoding;

// Prepares the decoder; again before every series of frames. CFFMPEG_NO_VIDEO when there is no such stream.
cffmpeg_status cffmpeg_begin(cffmpeg_video *, const cffmpeg_decoding *);
// Closes the decoder; its frames are void.
void cffmpeg_finish(cffmpeg_video *);

// Goes to the key frame at `second` or, if that is not at one, before it; with `nearest` to the next one when that is
// nearer and known. Seconds count from the film's first frame. False when the container has no way to.
bool cffmpeg_seek(cffmpeg_video *, double second, bool nearest);

typedef struct {
    const uint8_t *planes[4];
    int32_t strides[4];            // bytes, may be negative
    int32_t width, height;         // of the first plane; of the others see below
    int32_t full_width, full_height; // what the decoder would have given without any reduction
    int32_t chroma_width, chroma_height;
    int32_t chroma_shift_x, chroma_shift_y;
    int32_t plane_count;           // 1 grey, 3 Y'CbCr, 4 with alpha; 0 for none such: use the conversion
    int32_t depth, shift;          // bits of a sample; zero bits below it. Above 8 in 16-bit words of this machine
    bool full_range;
    int32_t matrix, primaries, transfer; // code points of ITU-T H.273; 2 is unknown
    int32_t sar_num, sar_den;
    bool is_interlaced, is_damaged;
    double second;                 // from the film's first frame; NAN when unknown
} cffmpeg_frame;

// The next frame. With a `second` that is a number, frames before it are decoded and dropped; the last one of the film
// is given when it ends before that. Decodes `budget` frames at most. Valid until the next call.
cffmpeg_status cffmpeg_next(cffmpeg_video *, double second, int32_t budget, cffmpeg_frame *);

// The current frame, stretched, as rows of red, green and blue without gaps. For formats without planes.
cffmpeg_status cffmpeg_rgb(cffmpeg_video *, int32_t width, int32_t height, uint8_t *pixels);

// The most intervals of cffmpeg_listen().
enum { CFFMPEG_INTERVALS = 4096 };

// Decodes the first `seconds` of the first stream of sound, and divides them into intervals of equal length: half of
// CFFMPEG_INTERVALS at least, if there are so many samples. Each has the largest sample of any channel, where 1 is full
// scale, and the mean of the squares of all. CFFMPEG_NO_VIDEO when there is no sound, CFFMPEG_DAMAGED when nothing of it
// can be decoded. For a file of which no frames were read. The series of frames ends.
cffmpeg_status cffmpeg_listen(cffmpeg_video *, double seconds, float *peaks, float *squares, int32_t *count);

// The version of FFmpeg, for example "5.1.6".
const char *cffmpeg_version(void);

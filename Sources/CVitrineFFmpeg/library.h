// The functions of FFmpeg, on Linux loaded at the start of the program without the libraries that they do not need.
#pragma once
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
#include <libswresample/version.h>
#include <libswscale/swscale.h>

// Loads the libraries, once. NULL, or the reason why it failed.
const char *cffmpeg_load(void);

// FFmpeg 6.1 keeps side data of a stream in its parameters, and 7.0 has no function of the stream any more.
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
#define CFFMPEG_HAS_CODED_SIDE_DATA 1
#define CFFMPEG_SIDE_DATA(X) X(av_packet_side_data_get)
#else
#define CFFMPEG_SIDE_DATA(X) X(av_stream_get_side_data)
#endif

#ifdef __linux__
#define CFFMPEG_FUNCTIONS(X) \
    X(av_dict_get) X(av_display_rotation_get) X(av_frame_alloc) X(av_frame_free) X(av_frame_move_ref) \
    X(av_frame_unref) X(av_free) X(av_freep) X(av_get_packed_sample_fmt) X(av_guess_frame_rate) X(av_guess_sample_aspect_ratio) \
    X(av_log_set_level) X(av_malloc) X(av_mallocz) X(av_match_list) X(av_match_name) X(av_new_packet) \
    X(av_packet_alloc) X(av_packet_free) X(av_packet_unref) X(av_pix_fmt_desc_get) X(av_probe_input_buffer2) X(av_probe_input_format3) \
    X(av_read_frame) X(av_rescale_q) X(av_sample_fmt_is_planar) X(av_seek_frame) X(av_strdup) CFFMPEG_SIDE_DATA(X) \
    X(av_version_info) X(avcodec_alloc_context3) X(avcodec_find_decoder) X(avcodec_find_decoder_by_name) \
    X(avcodec_flush_buffers) X(avcodec_free_context) X(avcodec_get_name) X(avcodec_open2) \
    X(avcodec_parameters_to_context) X(avcodec_receive_frame) X(avcodec_send_packet) X(avformat_alloc_context) \
    X(avformat_close_input) X(avformat_find_stream_info) X(avformat_index_get_entry) \
    X(avformat_index_get_entry_from_timestamp) X(avformat_open_input) X(avformat_seek_file) \
    X(avio_alloc_context) X(avio_context_free) X(avio_seek) X(sws_freeContext) X(sws_getCoefficients) \
    X(sws_getContext) X(sws_scale) X(sws_setColorspaceDetails)

typedef struct {
#define X(name) __typeof__(&name) name;
    CFFMPEG_FUNCTIONS(X)
#undef X
} cffmpeg_functions;

// Valid after cffmpeg_load() has returned NULL.
extern cffmpeg_functions cffmpeg_library;

#define av_dict_get(...) cffmpeg_library.av_dict_get(__VA_ARGS__)
#define av_display_rotation_get(...) cffmpeg_library.av_display_rotation_get(__VA_ARGS__)
#define av_frame_alloc(...) cffmpeg_library.av_frame_alloc(__VA_ARGS__)
#define av_frame_free(...) cffmpeg_library.av_frame_free(__VA_ARGS__)
#define av_frame_move_ref(...) cffmpeg_library.av_frame_move_ref(__VA_ARGS__)
#define av_frame_unref(...) cffmpeg_library.av_frame_unref(__VA_ARGS__)
#define av_free(...) cffmpeg_library.av_free(__VA_ARGS__)
#define av_freep(...) cffmpeg_library.av_freep(__VA_ARGS__)
#define av_get_packed_sample_fmt(...) cffmpeg_library.av_get_packed_sample_fmt(__VA_ARGS__)
#define av_guess_frame_rate(...) cffmpeg_library.av_guess_frame_rate(__VA_ARGS__)
#define av_guess_sample_aspect_ratio(...) cffmpeg_library.av_guess_sample_aspect_ratio(__VA_ARGS__)
#define av_log_set_level(...) cffmpeg_library.av_log_set_level(__VA_ARGS__)
#define av_malloc(...) cffmpeg_library.av_malloc(__VA_ARGS__)
#define av_mallocz(...) cffmpeg_library.av_mallocz(__VA_ARGS__)
#define av_match_list(...) cffmpeg_library.av_match_list(__VA_ARGS__)
#define av_match_name(...) cffmpeg_library.av_match_name(__VA_ARGS__)
#define av_new_packet(...) cffmpeg_library.av_new_packet(__VA_ARGS__)
#define av_packet_alloc(...) cffmpeg_library.av_packet_alloc(__VA_ARGS__)
#define av_packet_free(...) cffmpeg_library.av_packet_free(__VA_ARGS__)
#define av_packet_unref(...) cffmpeg_library.av_packet_unref(__VA_ARGS__)
#define av_pix_fmt_desc_get(...) cffmpeg_library.av_pix_fmt_desc_get(__VA_ARGS__)
#define av_probe_input_format3(...) cffmpeg_library.av_probe_input_format3(__VA_ARGS__)
#define av_probe_input_buffer2(...) cffmpeg_library.av_probe_input_buffer2(__VA_ARGS__)
#define av_read_frame(...) cffmpeg_library.av_read_frame(__VA_ARGS__)
#define av_rescale_q(...) cffmpeg_library.av_rescale_q(__VA_ARGS__)
#define av_sample_fmt_is_planar(...) cffmpeg_library.av_sample_fmt_is_planar(__VA_ARGS__)
#define av_seek_frame(...) cffmpeg_library.av_seek_frame(__VA_ARGS__)
#define av_strdup(...) cffmpeg_library.av_strdup(__VA_ARGS__)
#ifdef CFFMPEG_HAS_CODED_SIDE_DATA
#define av_packet_side_data_get(...) cffmpeg_library.av_packet_side_data_get(__VA_ARGS__)
#else
#define av_stream_get_side_data(...) cffmpeg_library.av_stream_get_side_data(__VA_ARGS__)
#endif
#define av_version_info(...) cffmpeg_library.av_version_info(__VA_ARGS__)
#define avcodec_alloc_context3(...) cffmpeg_library.avcodec_alloc_context3(__VA_ARGS__)
#define avcodec_find_decoder(...) cffmpeg_library.avcodec_find_decoder(__VA_ARGS__)
#define avcodec_find_decoder_by_name(...) cffmpeg_library.avcodec_find_decoder_by_name(__VA_ARGS__)
#define avcodec_flush_buffers(...) cffmpeg_library.avcodec_flush_buffers(__VA_ARGS__)
#define avcodec_free_context(...) cffmpeg_library.avcodec_free_context(__VA_ARGS__)
#define avcodec_get_name(...) cffmpeg_library.avcodec_get_name(__VA_ARGS__)
#define avcodec_open2(...) cffmpeg_library.avcodec_open2(__VA_ARGS__)
#define avcodec_parameters_to_context(...) cffmpeg_library.avcodec_parameters_to_context(__VA_ARGS__)
#define avcodec_receive_frame(...) cffmpeg_library.avcodec_receive_frame(__VA_ARGS__)
#define avcodec_send_packet(...) cffmpeg_library.avcodec_send_packet(__VA_ARGS__)
#define avformat_alloc_context(...) cffmpeg_library.avformat_alloc_context(__VA_ARGS__)
#define avformat_close_input(...) cffmpeg_library.avformat_close_input(__VA_ARGS__)
#define avformat_find_stream_info(...) cffmpeg_library.avformat_find_stream_info(__VA_ARGS__)
#define avformat_index_get_entry(...) cffmpeg_library.avformat_index_get_entry(__VA_ARGS__)
#define avformat_index_get_entry_from_timestamp(...) cffmpeg_library.avformat_index_get_entry_from_timestamp(__VA_ARGS__)
#define avformat_open_input(...) cffmpeg_library.avformat_open_input(__VA_ARGS__)
#define avformat_seek_file(...) cffmpeg_library.avformat_seek_file(__VA_ARGS__)
#define avio_alloc_context(...) cffmpeg_library.avio_alloc_context(__VA_ARGS__)
#define avio_context_free(...) cffmpeg_library.avio_context_free(__VA_ARGS__)
#define avio_seek(...) cffmpeg_library.avio_seek(__VA_ARGS__)
#define sws_freeContext(...) cffmpeg_library.sws_freeContext(__VA_ARGS__)
#define sws_getCoefficients(...) cffmpeg_library.sws_getCoefficients(__VA_ARGS__)
#define sws_getContext(...) cffmpeg_library.sws_getContext(__VA_ARGS__)
#define sws_scale(...) cffmpeg_library.sws_scale(__VA_ARGS__)
#define sws_setColorspaceDetails(...) cffmpeg_library.sws_setColorspaceDetails(__VA_ARGS__)
#endif

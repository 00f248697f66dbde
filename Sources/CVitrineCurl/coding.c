// Content codings, undone with the libraries that libcurl itself uses. libcurl's own decoding does not tell whether a
// compressed body has its end, so that a part of a file would pass for the whole.
#include "ccurl.h"

#include <clibraries.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

// MARK: The libraries

// The interfaces below are those of zlib 1, brotli 1 and zstd 1. They are declared here, because the packages with
// their headers are not needed otherwise.
typedef struct {
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state;
    void *(*allocate)(void *, unsigned, unsigned);
    void (*release)(void *, void *);
    void *opaque;
    int data_type;
    unsigned long adler, reserved;
} zlib_stream;

enum { ZLIB_END = 1, ZLIB_BUFFER = -5 };
enum { BROTLI_ERROR = 0, BROTLI_END = 1 };
enum { ZSTD_WINDOW_LIMIT = 100 };

typedef struct { const void *bytes; size_t count, place; } zstd_input;
typedef struct { void *bytes; size_t count, place; } zstd_output;

static struct {
    int (*inflateInit2_)(zlib_stream *, int, const char *, int);
    int (*inflate)(zlib_stream *, int);
    int (*inflateReset)(zlib_stream *);
    int (*inflateEnd)(zlib_stream *);
} zlib;

static struct {
    void *(*create)(void *, void *, void *);
    int (*decompress)(void *, size_t *, const uint8_t **, size_t *, uint8_t **, size_t *);
    void (*destroy)(void *);
} brotli;

static struct {
    void *(*create)(void);
    size_t (*set)(void *, int, int);
    size_t (*decompress)(void *, zstd_output *, zstd_input *);
    unsigned (*is_error)(size_t);
    size_t (*destroy)(void *);
} zstd;

static const char *const of_zlib[] = { "inflateInit2_", "inflate", "inflateReset", "inflateEnd" };
static const char *const of_brotli[] = {
    "BrotliDecoderCreateInstance", "BrotliDecoderDecompressStream", "BrotliDecoderDestroyInstance",
};
static const char *const of_zstd[] = {
    "ZSTD_createDCtx", "ZSTD_DCtx_setParameter", "ZSTD_decompressStream", "ZSTD_isError", "ZSTD_freeDCtx",
};

static clibraries_library libraries[] = {
    { .name = "libz.so.1", .advice = "install zlib1g", .symbols = of_zlib, .functions = (void **)&zlib, .count = 4 },
    { .name = "libbrotlidec.so.1", .advice = "install libbrotli1", .symbols = of_brotli, .functions = (void **)&brotli,
      .count = 3 },
    { .name = "libzstd.so.1", .advice = "install libzstd1", .symbols = of_zstd, .functions = (void **)&zstd,
      .count = 5 },
};

unsigned ccurl_codings(void) {
    static const unsigned codings[] = { CCURL_ZLIB, CCURL_BROTLI, CCURL_ZSTD };
    unsigned available = 0;
    for (int i = 0; i < 3; i++) {
        if (!clibraries_need(&libraries[i])) available |= codings[i];
    }
    return available;
}

// MARK: Decoders

struct ccurl_decoder {
    int coding;
    int has_begun;
    int has_ended;              // the last member or frame is complete
    int ignores_rest;           // what follows the end belongs to nothing
    zlib_stream zlib;
    void *state;                // of brotli or zstd
};

// RFC 9659: an endpoint may refuse windows of more than 8 MB.
enum { ZSTD_LARGEST_WINDOW = 23 };

ccurl_decoder *ccurl_decoder_create(int coding) {
    unsigned needed = CCURL_ZLIB;
    if (coding == CCURL_CODING_BROTLI) needed = CCURL_BROTLI;
    if (coding == CCURL_CODING_ZSTD) needed = CCURL_ZSTD;
    if (!(ccurl_codings() & needed)) return NULL;
    ccurl_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder) return NULL;
    decoder->coding = coding;
    if (coding == CCURL_CODING_BROTLI) decoder->state = brotli.create(NULL, NULL, NULL);
    if (coding == CCURL_CODING_ZSTD) {
        decoder->state = zstd.create();
        if (decoder->state) zstd.set(decoder->state, ZSTD_WINDOW_LIMIT, ZSTD_LARGEST_WINDOW);
    }
    if (needed != CCURL_ZLIB && !decoder->state) {
        free(decoder);
        return NULL;
    }
    return decoder;
}

void ccurl_decoder_destroy(ccurl_decoder *decoder) {
    if (!decoder) return;
    if (decoder->coding == CCURL_CODING_BROTLI) brotli.destroy(decoder->state);
    else if (decoder->coding == CCURL_CODING_ZSTD) zstd.destroy(decoder->state);
    else if (decoder->has_begun) zlib.inflateEnd(&decoder->zlib);
    free(decoder);
}

// Whether a byte behind the end of a member or frame can begin another one. Other bytes are ignored, as browsers do.
static int begins_another(const ccurl_decoder *decoder, uint8_t byte) {
    if (decoder->coding == CCURL_CODING_GZIP) return byte == 0x1F;
    return decoder->coding == CCURL_CODING_ZSTD && (byte == 0x28 || (byte & 0xF0) == 0x50);
}

static int begin_zlib(ccurl_decoder *decoder, uint8_t first) {
    if (decoder->has_begun) return zlib.inflateReset(&decoder->zlib) == 0;
    // "deflate" is the format of RFC 1950, but some servers send that of RFC 1951 alone. The low four bits of its first
    // byte are never 8: that would be a stored block with padding that is not zero.
    int bits = decoder->coding == CCURL_CODING_GZIP ? 15 + 16 : (first & 0x0F) == 8 ? 15 : -15;
    return zlib.inflateInit2_(&decoder->zlib, bits, "1.2.11", (int)sizeof decoder->zlib) == 0;
}

static int run_zlib(ccurl_decoder *decoder, const uint8_t **in, size_t *in_count, uint8_t **out, size_t *out_count) {
    zlib_stream *stream = &decoder->zlib;
    unsigned given = *in_count > UINT_MAX ? UINT_MAX : (unsigned)*in_count;
    unsigned room = *out_count > UINT_MAX ? UINT_MAX : (unsigned)*out_count;
    stream->next_in = *in;
    stream->avail_in = given;
    stream->next_out = *out;
    stream->avail_out = room;
    int result = zlib.inflate(stream, 0);
    *in += given - stream->avail_in;
    *in_count -= given - stream->avail_in;
    *out += room - stream->avail_out;
    *out_count -= room - stream->avail_out;
    if (result == ZLIB_END) decoder->has_ended = 1;
    return result == 0 || result == ZLIB_END || result == ZLIB_BUFFER;
}

static int run_zstd(ccurl_decoder *decoder, const uint8_t **in, size_t *in_count, uint8_t **out, size_t *out_count) {
    zstd_input input = { *in, *in_count, 0 };
    zstd_output output = { *out, *out_count, 0 };
    size_t result = zstd.decompress(decoder->state, &output, &input);
    *in += input.place;
    *in_count -= input.place;
    *out += output.place;
    *out_count -= output.place;
    if (zstd.is_error(result)) return 0;
    if (result == 0) decoder->has_ended = 1;
    return 1;
}

int ccurl_decode(ccurl_decoder *decoder, const uint8_t **in, size_t *in_count, uint8_t **out, size_t *out_count) {
    if (decoder->has_ended && *in_count > 0) {
        if (!decoder->ignores_rest && begins_another(decoder, **in)) {
            if (decoder->coding == CCURL_CODING_GZIP && !begin_zlib(decoder, **in)) return CCURL_DAMAGED;
            decoder->has_ended = 0;
        } else {
            decoder->ignores_rest = 1;
            *in += *in_count;
            *in_count = 0;
        }
    }
    if (decoder->has_ended) return CCURL_ENDED;
    int is_right;
    switch (decoder->coding) {
    case CCURL_CODING_BROTLI: {
        int result = brotli.decompress(decoder->state, in_count, in, out_count, out, NULL);
        is_right = result != BROTLI_ERROR;
        decoder->has_ended = result == BROTLI_END;
        break;
    }
    case CCURL_CODING_ZSTD: is_right = run_zstd(decoder, in, in_count, out, out_count); break;
    default:
        if (!decoder->has_begun) {
            if (*in_count == 0) return CCURL_MORE;
            if (!begin_zlib(decoder, **in)) return CCURL_DAMAGED;
        }
        decoder->has_begun = 1;
        is_right = run_zlib(decoder, in, in_count, out, out_count);
    }
    return !is_right ? CCURL_DAMAGED : decoder->has_ended ? CCURL_ENDED : CCURL_MORE;
}

// Transfers over HTTP by libcurl, in plain C types. One thread owns a loop and everything in it; only
// ccurl_loop_wake() may be called by others.
#pragma once

#include <stddef.h>
#include <stdint.h>

// How a transfer ended.
enum {
    CCURL_OK = 0,
    CCURL_STOPPED = 1,          // a callback said so
    CCURL_BAD_REQUEST = 2,      // the URL or an option cannot be used
    CCURL_NAME = 3,             // the host has no address
    CCURL_CONNECT = 4,          // nobody answered
    CCURL_TLS = 5,              // certificate or encryption not acceptable
    CCURL_TIMEOUT = 6,
    CCURL_TRUNCATED = 7,        // the connection ended before the response did
    CCURL_PROTOCOL = 8,         // the answer breaks the rules
    CCURL_HEADER_LIMIT = 9,     // more fields or bytes of header than accepted
    CCURL_MEMORY = 10,
    CCURL_PROXY = 11,           // the proxy's name or answer
    CCURL_OTHER = 12,
    CCURL_HEAD_CUT = 13,        // the connection ended before there was a final header
    CCURL_NO_HEAD = 14,         // what came instead of a final header is none
};

// The last header of a response, when it is complete.
typedef struct {
    int status;
    int version;                // 10, 11, 20, 30
    const uint8_t *lines;       // name: value, each line ended by \n or \r\n, without the status line
    size_t count;               // bytes of lines
    int64_t length;             // of the body as it is sent; -1 where it is not known
    const char *remote_address; // as text; never NULL
} ccurl_head;

// What a transfer tells its owner, on the loop's thread, with the context given to ccurl_start(). Where a result is
// wanted, 0 stops the transfer. done() is called once, unless the transfer is stopped by ccurl_stop().
typedef struct {
    // An address of 4 or 16 bytes is about to be connected to.
    int (*connecting)(void *context, const uint8_t *address, int count);
    // A connection, new or used before, is about to be given the request. The address is its other end's.
    int (*sending)(void *context, const uint8_t *address, int count);
    int (*head)(void *context, const ccurl_head *head);
    int (*body)(void *context, const uint8_t *bytes, size_t count);
    void (*done)(void *context, int result, const char *message);
} ccurl_callbacks;

typedef struct {
    long connections_per_host;
    long connections;           // in all; 0 for no limit
    const char *ca_file;        // NULL for the system's certificates
    const char *client_certificate, *client_key, *client_key_password;  // PEM files; NULL for none
    size_t header_size;         // most bytes of header
    int header_count;           // most fields
} ccurl_options;

typedef struct {
    const char *url;
    const char *method;
    const char *headers;        // lines, each ended by NUL; an empty one is the end
    const uint8_t *body;        // copied; NULL for none
    size_t body_count;
    const char *proxy;          // "" for none
    int decodes;                // asks for the content codings that ccurl_decode() undoes
    int http1;                  // no later version than 1.1
    int fresh;                  // on a connection of its own
    long buffer_size;
    long connect_timeout, total_timeout;    // milliseconds; 0 for none
} ccurl_request;

typedef struct ccurl_loop ccurl_loop;
typedef struct ccurl_transfer ccurl_transfer;

// Loads libcurl. NULL, or the reason why it cannot be loaded. ccurl_loop_create() fails then.
const char *ccurl_missing(void);
// The library's version: major << 16 | minor << 8 | patch; 0 without the library.
unsigned ccurl_version(void);
// Whether the library can: 1 HTTP/2. Bits.
unsigned ccurl_features(void);

// NULL if something is missing. The options are copied.
ccurl_loop *ccurl_loop_create(const ccurl_options *options, const ccurl_callbacks *callbacks);
// Ends all transfers without a word and closes all connections.
void ccurl_loop_destroy(ccurl_loop *loop);
// Waits for something to happen for at most so many milliseconds (-1: for ever), and handles it.
void ccurl_loop_run(ccurl_loop *loop, int milliseconds);
// Makes ccurl_loop_run() return, now or when it is called next. From any thread.
void ccurl_loop_wake(ccurl_loop *loop);

// Begins a transfer; NULL if the request cannot be sent. Callbacks come from ccurl_loop_run() only.
ccurl_transfer *ccurl_start(ccurl_loop *loop, const ccurl_request *request, void *context);
// Ends a transfer, whose callbacks are not called any more. Not after done().
void ccurl_stop(ccurl_transfer *transfer);
// Stops reading from the server, also from body(), or goes on, not from a callback: what had been read may then come
// to body() at once. 0 if that stopped the transfer, which is then for ccurl_stop().
int ccurl_pause(ccurl_transfer *transfer, int pauses);
// Milliseconds of a clock that never goes back.
int64_t ccurl_now(void);

// Which libraries of content codings are there. Bits.
enum { CCURL_ZLIB = 1, CCURL_BROTLI = 2, CCURL_ZSTD = 4 };
unsigned ccurl_codings(void);

enum { CCURL_CODING_GZIP = 1, CCURL_CODING_DEFLATE = 2, CCURL_CODING_BROTLI = 3, CCURL_CODING_ZSTD = 4 };

typedef struct ccurl_decoder ccurl_decoder;

// NULL without the library or memory.
ccurl_decoder *ccurl_decoder_create(int coding);
void ccurl_decoder_destroy(ccurl_decoder *decoder);

enum {
    CCURL_DAMAGED = -1,
    CCURL_MORE = 0,             // the end has not been reached: more input or more room is needed
    CCURL_ENDED = 1,            // the end has been reached; further input is another member, or is ignored
};
// Decodes as much as there is input and room for. Moves the pointers and reduces the counts.
int ccurl_decode(ccurl_decoder *decoder, const uint8_t **in, size_t *in_count, uint8_t **out, size_t *out_count);

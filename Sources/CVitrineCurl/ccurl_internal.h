// What the files of this target share.
#pragma once

#include "ccurl.h"

#include "library.h"

// Handles kept for the next transfers.
enum { CCURL_SPARE = 64 };
// The most interim responses before a final one.
enum { CCURL_INTERIMS = 32 };

struct ccurl_transfer {
    ccurl_loop *loop;
    CURL *easy;
    struct curl_slist *headers;
    void *context;
    uint8_t *head;              // the header that is arriving
    size_t head_count, head_capacity;
    int socket;                 // the one that was watched last; -1 for none
    int fields, interims;
    int status, version;
    int head_is_done, header_too_large, head_is_wrong;
    // What the handle was last given, so that the same need not be said again.
    int is_plain;               // a GET without a body, with the fields below
    char *lines, *proxy;
    size_t lines_count;
    ccurl_request last;
    char message[CURL_ERROR_SIZE];
    ccurl_transfer *previous, *next;
};

// What the kernel has been told of a descriptor.
typedef struct {
    uint8_t is_ours;            // closed by close_socket() only, which nothing passes by
    uint8_t is_registered;
    uint8_t wanted, told;       // CURL_POLL_IN and so on; 0 for nothing
    uint8_t is_between;         // of HTTP/1 and between two responses, where the server has nothing to say
} ccurl_socket;

struct ccurl_loop {
    CURLM *multi;
    int epoll, event;
    ccurl_socket *sockets;      // by number
    int socket_count;
    int state;                  // atomic: what ccurl_loop_wake() must know
    int64_t deadline;           // when libcurl wants to be called; -1 for never
    ccurl_callbacks callbacks;
    ccurl_options options;
    ccurl_transfer *active;     // a list
    ccurl_transfer *spare[CCURL_SPARE];
    int spare_count;
};

// A handle that has what all transfers of a loop have in common; NULL without memory.
ccurl_transfer *ccurl_transfer_create(ccurl_loop *loop);
void ccurl_transfer_destroy(ccurl_transfer *transfer);
// Gives a handle everything that a request says.
int ccurl_transfer_prepare(ccurl_transfer *transfer, const ccurl_request *request);
// Forgets what the last request said.
void ccurl_transfer_clear(ccurl_transfer *transfer);
// The entry of a descriptor; NULL without memory.
ccurl_socket *ccurl_loop_socket(ccurl_loop *loop, int number);
// What libcurl's code means here.
int ccurl_result(const ccurl_transfer *transfer, CURLcode code);

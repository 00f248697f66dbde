#include "ccurl_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// What the thread of a loop is doing, for those who want to wake it.
enum { RUNNING = 0, SLEEPING = 1, WOKEN = 2 };

unsigned ccurl_version(void) {
    return ccurl_missing() ? 0 : curl_version_info(CURLVERSION_NOW)->version_num;
}

unsigned ccurl_features(void) {
    if (ccurl_missing()) return 0;
    int features = curl_version_info(CURLVERSION_NOW)->features;
    return features & CURL_VERSION_HTTP2 ? 1u : 0u;
}

int64_t ccurl_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

ccurl_socket *ccurl_loop_socket(ccurl_loop *loop, int number) {
    if (number < 0) return NULL;
    if (number >= loop->socket_count) {
        int count = number < 512 ? 1024 : number * 2;
        ccurl_socket *larger = realloc(loop->sockets, (size_t)count * sizeof *larger);
        if (!larger) return NULL;
        memset(larger + loop->socket_count, 0, (size_t)(count - loop->socket_count) * sizeof *larger);
        loop->sockets = larger;
        loop->socket_count = count;
    }
    return &loop->sockets[number];
}

static void tell(ccurl_loop *loop, int number, ccurl_socket *socket) {
    struct epoll_event event = { .data.fd = number };
    if (socket->wanted & CURL_POLL_IN) event.events |= EPOLLIN;
    if (socket->wanted & CURL_POLL_OUT) event.events |= EPOLLOUT;
    int is_first = !socket->is_registered;
    // A number may have been closed and given to another socket unseen.
    if (epoll_ctl(loop->epoll, is_first ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, number, &event) != 0)
        epoll_ctl(loop->epoll, is_first ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, number, &event);
    socket->is_registered = 1;
    socket->told = socket->wanted;
}

static void untell(ccurl_loop *loop, int number, ccurl_socket *socket) {
    // Fails where the descriptor has been closed, which has done the same.
    if (socket->is_registered) epoll_ctl(loop->epoll, EPOLL_CTL_DEL, number, NULL);
    socket->is_registered = 0;
    socket->told = 0;
}

// Between two requests a connection is not watched, which the kernel is not told unless something happens: most are
// used again before.
static int watch(CURL *easy, curl_socket_t number, int what, void *context, void *socket_context) {
    (void)socket_context;
    ccurl_transfer *transfer = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&transfer);
    if (transfer && what != CURL_POLL_REMOVE) transfer->socket = number;
    ccurl_loop *loop = context;
    ccurl_socket *socket = ccurl_loop_socket(loop, number);
    if (!socket) return -1;
    socket->wanted = what == CURL_POLL_REMOVE ? 0 : (uint8_t)what;
    if (socket->wanted) socket->is_between = 0;
    if (socket->wanted == 0) {
        if (!socket->is_ours) untell(loop, number, socket);
    } else if (!socket->is_ours || !socket->is_registered || socket->told != socket->wanted) {
        tell(loop, number, socket);
    }
    return 0;
}

static void handle(ccurl_loop *loop, const struct epoll_event *event) {
    int number = event->data.fd, mask = 0, running;
    ccurl_socket *socket = ccurl_loop_socket(loop, number);
    if (!socket) return;
    if (socket->wanted == 0) {
        untell(loop, number, socket);
        // Bytes behind a body, or the server's end. The next request on the connection would take the bytes for its
        // answer, so nothing is sent or received on it any more: libcurl then uses another one.
        // A transfer that is paused does not watch its connection either, and is not between two responses.
        if (socket->is_ours && socket->is_between) shutdown(number, SHUT_RDWR);
        return;
    }
    if (event->events & EPOLLIN) mask |= CURL_CSELECT_IN;
    if (event->events & EPOLLOUT) mask |= CURL_CSELECT_OUT;
    if (event->events & (EPOLLERR | EPOLLHUP)) mask |= CURL_CSELECT_ERR;
    curl_multi_socket_action(loop->multi, number, mask, &running);
}

static int set_timer(CURLM *multi, long milliseconds, void *context) {
    (void)multi;
    ccurl_loop *loop = context;
    loop->deadline = milliseconds < 0 ? -1 : ccurl_now() + milliseconds;
    return 0;
}

static char *copy(const char *text) {
    return text ? strdup(text) : NULL;
}

ccurl_loop *ccurl_loop_create(const ccurl_options *options, const ccurl_callbacks *callbacks) {
    if (ccurl_missing()) return NULL;
    ccurl_loop *loop = calloc(1, sizeof *loop);
    if (!loop) return NULL;
    loop->callbacks = *callbacks;
    loop->options = *options;
    loop->options.ca_file = copy(options->ca_file);
    loop->options.client_certificate = copy(options->client_certificate);
    loop->options.client_key = copy(options->client_key);
    loop->options.client_key_password = copy(options->client_key_password);
    loop->deadline = -1;
    loop->multi = curl_multi_init();
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = loop->event };
    if (!loop->multi || loop->epoll < 0 || loop->event < 0
        || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->event, &event) != 0) {
        ccurl_loop_destroy(loop);
        return NULL;
    }
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, watch);
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(loop->multi, CURLMOPT_MAX_HOST_CONNECTIONS, options->connections_per_host);
    curl_multi_setopt(loop->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, options->connections);
    if (options->connections > 0) curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, options->connections);
    return loop;
}

static void detach(ccurl_transfer *transfer) {
    ccurl_loop *loop = transfer->loop;
    curl_multi_remove_handle(loop->multi, transfer->easy);
    if (transfer->previous) transfer->previous->next = transfer->next;
    else loop->active = transfer->next;
    if (transfer->next) transfer->next->previous = transfer->previous;
    transfer->previous = transfer->next = NULL;
    if (loop->spare_count < CCURL_SPARE) {
        ccurl_transfer_clear(transfer);
        loop->spare[loop->spare_count++] = transfer;
    } else {
        ccurl_transfer_destroy(transfer);
    }
}

void ccurl_loop_destroy(ccurl_loop *loop) {
    if (!loop) return;
    while (loop->active) detach(loop->active);
    while (loop->spare_count > 0) ccurl_transfer_destroy(loop->spare[--loop->spare_count]);
    if (loop->multi) curl_multi_cleanup(loop->multi);
    if (loop->epoll >= 0) close(loop->epoll);
    if (loop->event >= 0) close(loop->event);
    free((char *)loop->options.ca_file);
    free((char *)loop->options.client_certificate);
    free((char *)loop->options.client_key);
    free((char *)loop->options.client_key_password);
    free(loop->sockets);
    free(loop);
}

void ccurl_loop_wake(ccurl_loop *loop) {
    // Only a thread that sleeps costs a system call.
    if (__atomic_exchange_n(&loop->state, WOKEN, __ATOMIC_SEQ_CST) != SLEEPING) return;
    uint64_t one = 1;
    ssize_t written = write(loop->event, &one, sizeof one);
    (void)written;
}

// libcurl's words for a result, and the system's for why there is no connection.
static void describe(ccurl_transfer *transfer, CURLcode code, char *text, size_t size) {
    const char *message = transfer->message[0] ? transfer->message : curl_easy_strerror(code);
    long error = 0;
    if (code == CURLE_COULDNT_CONNECT) curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &error);
    if (error > 0) snprintf(text, size, "%s: %s", message, strerror((int)error));
    else snprintf(text, size, "%s", message);
}

static void finish(ccurl_loop *loop) {
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(loop->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        ccurl_transfer *transfer = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        if (!transfer) continue;
        void *context = transfer->context;
        int result = ccurl_result(transfer, code);
        char text[CURL_ERROR_SIZE];
        describe(transfer, code, text, sizeof text);
        ccurl_socket *socket = code == CURLE_OK ? ccurl_loop_socket(loop, transfer->socket) : NULL;
        if (socket && !socket->wanted) socket->is_between = transfer->version > 0 && transfer->version < 20;
        detach(transfer);
        loop->callbacks.done(context, result, text);
    }
}

void ccurl_loop_run(ccurl_loop *loop, int milliseconds) {
    int expected = RUNNING;
    int sleeps = __atomic_compare_exchange_n(
        &loop->state, &expected, SLEEPING, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    int64_t timeout = sleeps ? milliseconds : 0;
    if (timeout != 0 && loop->deadline >= 0) {
        int64_t rest = loop->deadline - ccurl_now();
        if (rest < 0) rest = 0;
        if (timeout < 0 || rest < timeout) timeout = rest;
    }
    struct epoll_event events[128];
    int count = epoll_wait(loop->epoll, events, 128, (int)timeout);
    __atomic_store_n(&loop->state, RUNNING, __ATOMIC_SEQ_CST);
    int running;
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == loop->event) {
            uint64_t value;
            ssize_t size = read(loop->event, &value, sizeof value);
            (void)size;
            continue;
        }
        handle(loop, &events[i]);
    }
    if (loop->deadline >= 0 && loop->deadline <= ccurl_now()) {
        loop->deadline = -1;
        curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    finish(loop);
}

ccurl_transfer *ccurl_start(ccurl_loop *loop, const ccurl_request *request, void *context) {
    ccurl_transfer *transfer =
        loop->spare_count > 0 ? loop->spare[--loop->spare_count] : ccurl_transfer_create(loop);
    if (!transfer) return NULL;
    transfer->context = context;
    if (!ccurl_transfer_prepare(transfer, request) || curl_multi_add_handle(loop->multi, transfer->easy) != CURLM_OK) {
        ccurl_transfer_destroy(transfer);
        return NULL;
    }
    transfer->next = loop->active;
    if (loop->active) loop->active->previous = transfer;
    loop->active = transfer;
    return transfer;
}

void ccurl_stop(ccurl_transfer *transfer) {
    detach(transfer);
}

int ccurl_pause(ccurl_transfer *transfer, int pauses) {
    // Pausing one direction alone makes the library read once more at once.
    return curl_easy_pause(transfer->easy, pauses ? CURLPAUSE_ALL : CURLPAUSE_CONT) == CURLE_OK;
}

#include "ccurl_internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// MARK: What libcurl calls

static int with_address(const struct sockaddr *address, int (*then)(void *, const uint8_t *, int), void *context) {
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        return then(context, (const uint8_t *)&v4->sin_addr, 4);
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
        return then(context, v6->sin6_addr.s6_addr, 16);
    }
    return 0;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    ccurl_transfer *transfer = context;
    if (purpose != CURLSOCKTYPE_IPCXN
        || !with_address(&address->addr, transfer->loop->callbacks.connecting, transfer->context))
        return CURL_SOCKET_BAD;
    int number = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    ccurl_socket *entry = ccurl_loop_socket(transfer->loop, number);
    if (entry) *entry = (ccurl_socket){ .is_ours = 1 };
    return number;
}

static int close_socket(void *context, curl_socket_t number) {
    ccurl_socket *entry = ccurl_loop_socket(context, number);
    if (entry) *entry = (ccurl_socket){ 0 };
    return close(number);
}

static int before_sending(void *context, char *remote, char *local, int remote_port, int local_port) {
    (void)local;
    (void)remote_port;
    (void)local_port;
    ccurl_transfer *transfer = context;
    uint8_t bytes[16];
    int count = inet_pton(AF_INET, remote, bytes) == 1 ? 4 : inet_pton(AF_INET6, remote, bytes) == 1 ? 16 : 0;
    return transfer->loop->callbacks.sending(transfer->context, bytes, count) ? CURL_PREREQFUNC_OK
                                                                                : CURL_PREREQFUNC_ABORT;
}

static int append(ccurl_transfer *transfer, const char *bytes, size_t count) {
    size_t needed = transfer->head_count + count;
    if (needed > transfer->head_capacity) {
        size_t capacity = needed < 1024 ? 1024 : needed * 2;
        uint8_t *larger = realloc(transfer->head, capacity);
        if (!larger) return 0;
        transfer->head = larger;
        transfer->head_capacity = capacity;
    }
    memcpy(transfer->head + transfer->head_count, bytes, count);
    transfer->head_count = needed;
    return 1;
}

// "HTTP/1.1 200 OK", "HTTP/2 200".
static void read_status_line(ccurl_transfer *transfer, const char *line, size_t count) {
    transfer->head_count = 0;
    transfer->fields = 0;
    transfer->version = count > 5 && line[5] >= '0' && line[5] <= '9' ? (line[5] - '0') * 10 : 0;
    if (count > 7 && line[6] == '.' && line[7] >= '0' && line[7] <= '9') transfer->version += line[7] - '0';
    long status = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    transfer->status = (int)status;
}

static int deliver_head(ccurl_transfer *transfer) {
    char *remote = NULL;
    curl_easy_getinfo(transfer->easy, CURLINFO_PRIMARY_IP, &remote);
    curl_off_t length = -1;
    curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    ccurl_head head = {
        .status = transfer->status,
        .version = transfer->version,
        .lines = transfer->head,
        .count = transfer->head_count,
        .length = length,
        .remote_address = remote ? remote : "",
    };
    transfer->head_is_done = 1;
    return transfer->loop->callbacks.head(transfer->context, &head);
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context) {
    ccurl_transfer *transfer = context;
    (void)size;
    // What comes behind the body are trailers.
    if (transfer->head_is_done) return count;
    if (count >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        if (transfer->status != 0 && ++transfer->interims > CCURL_INTERIMS) {
            transfer->header_too_large = 1;
            return 0;
        }
        read_status_line(transfer, bytes, count);
        return count;
    }
    if (count == 0 || bytes[0] == '\r' || bytes[0] == '\n') {
        if (transfer->status >= 200) return deliver_head(transfer) ? count : 0;
        // Interim responses are followed by another header, except that 101 would end HTTP on the connection. No request
        // asks for that (RFC 9110, section 15.2.2).
        if (transfer->status >= 100 && transfer->status != 101) return count;
        transfer->head_is_wrong = 1;
        return 0;
    }
    const ccurl_options *options = &transfer->loop->options;
    if (++transfer->fields > options->header_count || transfer->head_count + count > options->header_size) {
        transfer->header_too_large = 1;
        return 0;
    }
    return append(transfer, bytes, count) ? count : 0;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context) {
    ccurl_transfer *transfer = context;
    (void)size;
    if (!transfer->head_is_done) {
        // libcurl takes it for a body; without a head it belongs to nothing.
        transfer->head_is_wrong = 1;
        return 0;
    }
    return transfer->loop->callbacks.body(transfer->context, (const uint8_t *)bytes, count) ? count : 0;
}

// MARK: Handles

ccurl_transfer *ccurl_transfer_create(ccurl_loop *loop) {
    ccurl_transfer *transfer = calloc(1, sizeof *transfer);
    if (!transfer) return NULL;
    transfer->loop = loop;
    transfer->socket = -1;
    transfer->easy = curl_easy_init();
    if (transfer->easy) return transfer;
    free(transfer);
    return NULL;
}

void ccurl_transfer_destroy(ccurl_transfer *transfer) {
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    free(transfer->head);
    free(transfer->lines);
    free(transfer->proxy);
    free(transfer);
}

void ccurl_transfer_clear(ccurl_transfer *transfer) {
    transfer->context = NULL;
    transfer->socket = -1;
    transfer->head_count = 0;
    transfer->fields = transfer->interims = transfer->status = transfer->version = 0;
    transfer->head_is_done = transfer->header_too_large = transfer->head_is_wrong = 0;
    transfer->message[0] = 0;
}

static int set_common_options(ccurl_transfer *transfer) {
    CURL *easy = transfer->easy;
    const ccurl_options *options = &transfer->loop->options;
    int failed = 0;
    failed |= curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    failed |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->message);
    failed |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    failed |= curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
    failed |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    failed |= curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    failed |= curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    failed |= curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    failed |= curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    failed |= curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    // ccurl_decode() does it, which knows the end of a body.
    failed |= curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    failed |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    failed |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    failed |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    failed |= curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    // The proxy is named for each transfer; the environment has been read already.
    failed |= curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
#if LIBCURL_VERSION_NUM >= 0x075500
    failed |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    failed |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    // A transfer that is stopped while a thread asks for the host's address does not wait for that thread.
    failed |= curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    failed |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    failed |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    failed |= curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    failed |= curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, transfer->loop);
    failed |= curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_sending);
    failed |= curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    failed |= curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    failed |= curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    failed |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    failed |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    if (options->ca_file) {
        failed |= curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file);
        failed |= curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (options->client_certificate) failed |= curl_easy_setopt(easy, CURLOPT_SSLCERT, options->client_certificate);
    if (options->client_key) failed |= curl_easy_setopt(easy, CURLOPT_SSLKEY, options->client_key);
    if (options->client_key_password) failed |= curl_easy_setopt(easy, CURLOPT_KEYPASSWD, options->client_key_password);
    return !failed;
}

static size_t length_of(const char *lines) {
    const char *line = lines;
    while (*line) line += strlen(line) + 1;
    return (size_t)(line - lines) + 1;
}

static int set_headers(ccurl_transfer *transfer, const char *lines) {
    size_t count = length_of(lines);
    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    free(transfer->lines);
    transfer->lines = malloc(count);
    if (!transfer->lines) return 0;
    memcpy(transfer->lines, lines, count);
    transfer->lines_count = count;
    for (const char *line = lines; *line; line += strlen(line) + 1) {
        struct curl_slist *longer = curl_slist_append(transfer->headers, line);
        if (!longer) return 0;
        transfer->headers = longer;
    }
    return curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers) == CURLE_OK;
}

static int is_plain(const ccurl_request *request) {
    return !request->body && strcmp(request->method, "GET") == 0;
}

// Whether the handle has everything but the URL already: requests to one site are mostly alike.
static int is_same(const ccurl_transfer *transfer, const ccurl_request *request) {
    const ccurl_request *last = &transfer->last;
    return transfer->is_plain && is_plain(request) && last->decodes == request->decodes
        && last->http1 == request->http1 && last->fresh == request->fresh
        && last->buffer_size == request->buffer_size && last->connect_timeout == request->connect_timeout
        && last->total_timeout == request->total_timeout && strcmp(transfer->proxy, request->proxy) == 0
        && transfer->lines_count == length_of(request->headers)
        && memcmp(transfer->lines, request->headers, transfer->lines_count) == 0;
}

static int set_method(CURL *easy, const ccurl_request *request) {
    int failed = 0;
    if (request->body) {
        failed |= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_count);
        failed |= curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request->body);
    }
    if (strcmp(request->method, "HEAD") == 0)
        failed |= curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else if (request->body || strcmp(request->method, "GET") != 0)
        failed |= curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    return !failed;
}

static const char *accepted_codings(void) {
    static const char *const lists[] = {
        "identity", "gzip, deflate", "br", "gzip, deflate, br", "zstd", "gzip, deflate, zstd", "br, zstd",
        "gzip, deflate, br, zstd",
    };
    return lists[ccurl_codings() & 7];
}

int ccurl_transfer_prepare(ccurl_transfer *transfer, const ccurl_request *request) {
    CURL *easy = transfer->easy;
    if (is_same(transfer, request)) return curl_easy_setopt(easy, CURLOPT_URL, request->url) == CURLE_OK;
    // Forgets every option; connections belong to the loop.
    curl_easy_reset(easy);
    transfer->is_plain = 0;
    if (!set_common_options(transfer)) return 0;
    int failed = 0;
    failed |= curl_easy_setopt(easy, CURLOPT_URL, request->url);
    failed |= curl_easy_setopt(easy, CURLOPT_PROXY, request->proxy);
    failed |= curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, request->buffer_size);
    failed |= curl_easy_setopt(
        easy, CURLOPT_HTTP_VERSION, (long)(request->http1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    failed |= curl_easy_setopt(easy, CURLOPT_PIPEWAIT, request->http1 ? 0L : 1L);
    failed |= curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request->fresh ? 1L : 0L);
    // 0 would be libcurl's own five minutes.
    failed |= curl_easy_setopt(
        easy, CURLOPT_CONNECTTIMEOUT_MS, request->connect_timeout > 0 ? request->connect_timeout : 0x7FFFFFFFL);
    failed |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, request->total_timeout);
    if (request->decodes) failed |= curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, accepted_codings());
    if (failed || !set_method(easy, request) || !set_headers(transfer, request->headers)) return 0;
    free(transfer->proxy);
    transfer->proxy = strdup(request->proxy);
    transfer->last = *request;
    transfer->is_plain = transfer->proxy && is_plain(request);
    return 1;
}

int ccurl_result(const ccurl_transfer *transfer, CURLcode code) {
    if (transfer->header_too_large) return CCURL_HEADER_LIMIT;
    if (transfer->head_is_wrong) return CCURL_NO_HEAD;
    switch (code) {
    // libcurl counts a connection that ends within the header, or behind interim responses, as a success.
    case CURLE_OK: return transfer->head_is_done ? CCURL_OK : CCURL_HEAD_CUT;
    case CURLE_WRITE_ERROR:
    case CURLE_ABORTED_BY_CALLBACK: return CCURL_STOPPED;
    case CURLE_URL_MALFORMAT:
    case CURLE_BAD_FUNCTION_ARGUMENT: return CCURL_BAD_REQUEST;
    case CURLE_COULDNT_RESOLVE_HOST: return CCURL_NAME;
    case CURLE_COULDNT_CONNECT:
    case CURLE_NO_CONNECTION_AVAILABLE:
    case CURLE_INTERFACE_FAILED: return CCURL_CONNECT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_CLIENTCERT: return CCURL_TLS;
    case CURLE_OPERATION_TIMEDOUT: return CCURL_TIMEOUT;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_HTTP2_STREAM: return CCURL_TRUNCATED;
    case CURLE_UNSUPPORTED_PROTOCOL:    // of an answer; the scheme has been looked at before
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_HTTP2:
    case CURLE_FILESIZE_EXCEEDED:
    case CURLE_RANGE_ERROR: return CCURL_PROTOCOL;
    case CURLE_OUT_OF_MEMORY: return CCURL_MEMORY;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY: return CCURL_PROXY;
    default: return CCURL_OTHER;
    }
}

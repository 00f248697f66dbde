#include "network_peer.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct {
    CURL *easy;
    char *bytes;
    size_t count, capacity;
    int number;
} slot;

static size_t take(char *bytes, size_t size, size_t count, void *context) {
    slot *slot = context;
    size *= count;
    if (slot->count + size > slot->capacity) {
        slot->capacity = (slot->count + size) * 2;
        slot->bytes = realloc(slot->bytes, slot->capacity);
    }
    memcpy(slot->bytes + slot->count, bytes, size);
    slot->count += size;
    return size;
}

static void start(CURLM *multi, slot *slot, const char *base, int number) {
    char url[512];
    snprintf(url, sizeof url, "%s/%d.jpg", base, number % 1000);
    slot->count = 0;
    slot->number = number;
    curl_easy_setopt(slot->easy, CURLOPT_URL, url);
    curl_multi_add_handle(multi, slot->easy);
}

static int keep(const slot *slot, const char *directory) {
    char path[512];
    snprintf(path, sizeof path, "%s/%d.jpg", directory, slot->number);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return -1;
    ssize_t written = write(file, slot->bytes, slot->count);
    return close(file) == 0 && written == (ssize_t)slot->count ? 0 : -1;
}

long long network_peer_small(
    const char *base, int count, int concurrency, const char *ca_file, int http2, const char *directory) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURLM *multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)concurrency);
    slot *slots = calloc((size_t)concurrency, sizeof *slots);
    int next = 0, done = 0, running = 0, left = 0;
    long long total = 0;
    for (int i = 0; i < concurrency && next < count; i++) {
        CURL *easy = slots[i].easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &slots[i]);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, &slots[i]);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        if (ca_file[0]) curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file);
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, http2 ? 1L : 0L);
        curl_easy_setopt(
            easy, CURLOPT_HTTP_VERSION, (long)(http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
        start(multi, &slots[i], base, next++);
    }
    while (done < count) {
        curl_multi_perform(multi, &running);
        CURLMsg *message;
        while ((message = curl_multi_info_read(multi, &left))) {
            slot *slot;
            if (message->data.result != CURLE_OK) return -1;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&slot);
            total += (long long)slot->count;
            if (directory[0] && keep(slot, directory) != 0) return -1;
            curl_multi_remove_handle(multi, slot->easy);
            done++;
            if (next < count) start(multi, slot, base, next++);
        }
        if (done < count) curl_multi_poll(multi, NULL, 0, 100, NULL);
    }
    for (int i = 0; i < concurrency; i++) {
        if (slots[i].easy) curl_easy_cleanup(slots[i].easy);
        free(slots[i].bytes);
    }
    free(slots);
    curl_multi_cleanup(multi);
    return total;
}

long network_peer_peak(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : 0;
}

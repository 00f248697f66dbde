// What a program in C does with libcurl and the system's calls and nothing else: the measure of the loader.
#pragma once

// Loads base/0.jpg … base/999.jpg over and over, so many in all and at a time, into memory, and then each into a file of
// its own in a directory unless that is empty. Returns the bytes received, or -1.
long long network_peer_small(
    const char *base, int count, int concurrency, const char *ca_file, int http2, const char *directory);

// The most memory this process has had, in kilobytes.
long network_peer_peak(void);

// What a program in C does with libcurl and nothing else: the measure of the loader.
#pragma once

// Loads base/0.jpg … base/999.jpg over and over, so many in all and at a time, into memory.
// Returns the bytes received, or -1.
long long network_peer_small(const char *base, int count, int concurrency, const char *ca_file, int http2);

// The most memory this process has had, in kilobytes.
long network_peer_peak(void);

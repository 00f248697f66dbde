// libcurl, loaded with the first loop: it brings more than thirty other libraries.
#pragma once

#if !__has_include(<curl/curl.h>)
#error "curl/curl.h is missing. Install libcurl4-openssl-dev (Debian and Ubuntu) or libcurl-devel (Fedora)."
#else

// The checks of arguments call the functions by their own names, and so would link the library.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#if LIBCURL_VERSION_NUM < 0x075000
#error "libcurl 7.80 or later is needed. Install a newer libcurl4-openssl-dev (Debian and Ubuntu) or libcurl-devel (Fedora)."
#endif

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define CCURL_FUNCTIONS(X) \
    X(curl_easy_cleanup) X(curl_easy_getinfo) X(curl_easy_init) X(curl_easy_pause) X(curl_easy_reset)           \
    X(curl_easy_setopt) X(curl_easy_strerror) X(curl_global_init) X(curl_multi_add_handle) X(curl_multi_cleanup)\
    X(curl_multi_info_read) X(curl_multi_init) X(curl_multi_remove_handle) X(curl_multi_setopt)                 \
    X(curl_multi_socket_action) X(curl_slist_append) X(curl_slist_free_all) X(curl_version_info)

typedef struct {
#define X(name) __typeof__(&name) name;
    CCURL_FUNCTIONS(X)
#undef X
} ccurl_functions;

// Valid after ccurl_missing() has returned NULL.
extern ccurl_functions ccurl_library;

#define curl_easy_cleanup(...) ccurl_library.curl_easy_cleanup(__VA_ARGS__)
#define curl_easy_getinfo(...) ccurl_library.curl_easy_getinfo(__VA_ARGS__)
#define curl_easy_init(...) ccurl_library.curl_easy_init(__VA_ARGS__)
#define curl_easy_pause(...) ccurl_library.curl_easy_pause(__VA_ARGS__)
#define curl_easy_reset(...) ccurl_library.curl_easy_reset(__VA_ARGS__)
#define curl_easy_setopt(...) ccurl_library.curl_easy_setopt(__VA_ARGS__)
#define curl_easy_strerror(...) ccurl_library.curl_easy_strerror(__VA_ARGS__)
#define curl_global_init(...) ccurl_library.curl_global_init(__VA_ARGS__)
#define curl_multi_add_handle(...) ccurl_library.curl_multi_add_handle(__VA_ARGS__)
#define curl_multi_cleanup(...) ccurl_library.curl_multi_cleanup(__VA_ARGS__)
#define curl_multi_info_read(...) ccurl_library.curl_multi_info_read(__VA_ARGS__)
#define curl_multi_init(...) ccurl_library.curl_multi_init(__VA_ARGS__)
#define curl_multi_remove_handle(...) ccurl_library.curl_multi_remove_handle(__VA_ARGS__)
#define curl_multi_setopt(...) ccurl_library.curl_multi_setopt(__VA_ARGS__)
#define curl_multi_socket_action(...) ccurl_library.curl_multi_socket_action(__VA_ARGS__)
#define curl_slist_append(...) ccurl_library.curl_slist_append(__VA_ARGS__)
#define curl_slist_free_all(...) ccurl_library.curl_slist_free_all(__VA_ARGS__)
#define curl_version_info(...) ccurl_library.curl_version_info(__VA_ARGS__)
#endif

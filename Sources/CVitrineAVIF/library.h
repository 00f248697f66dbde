// libavif, on Linux loaded with the first AVIF file: it brings several AV1 codecs with more than twenty other libraries.
#pragma once

#if !__has_include(<avif/avif.h>)
#error "avif/avif.h is missing. Install libavif-dev (Debian and Ubuntu), libavif-devel (Fedora) or libavif (brew)."
#else
#include <avif/avif.h>
// 0.9.2 is the last version with another interface.
#if AVIF_VERSION < 90300
#error "libavif 0.9.3 or later is needed. Install a newer libavif-dev (Debian and Ubuntu), libavif-devel (Fedora) or libavif (brew)."
#endif

#ifdef __linux__
#define CAVIF_FUNCTIONS(X) \
    X(avifCodecName) X(avifDecoderCreate) X(avifDecoderDestroy) X(avifDecoderNthImage) X(avifDecoderParse)      \
    X(avifDecoderSetIOMemory) X(avifEncoderAddImage) X(avifEncoderCreate) X(avifEncoderDestroy)                 \
    X(avifEncoderFinish) X(avifFree) X(avifImageCreate) X(avifImageDestroy) X(avifImageRGBToYUV)                \
    X(avifImageSetMetadataExif) X(avifImageSetMetadataXMP) X(avifImageYUVToRGB) X(avifRGBImageSetDefaults)      \
    X(avifRWDataFree) X(avifResultToString) X(avifVersion)

typedef struct {
#define X(name) __typeof__(&name) name;
    CAVIF_FUNCTIONS(X)
#undef X
} cavif_functions;

// Valid after cavif_missing() has returned NULL.
extern cavif_functions cavif_library;

#define avifCodecName(...) cavif_library.avifCodecName(__VA_ARGS__)
#define avifDecoderCreate(...) cavif_library.avifDecoderCreate(__VA_ARGS__)
#define avifDecoderDestroy(...) cavif_library.avifDecoderDestroy(__VA_ARGS__)
#define avifDecoderNthImage(...) cavif_library.avifDecoderNthImage(__VA_ARGS__)
#define avifDecoderParse(...) cavif_library.avifDecoderParse(__VA_ARGS__)
#define avifDecoderSetIOMemory(...) cavif_library.avifDecoderSetIOMemory(__VA_ARGS__)
#define avifEncoderAddImage(...) cavif_library.avifEncoderAddImage(__VA_ARGS__)
#define avifEncoderCreate(...) cavif_library.avifEncoderCreate(__VA_ARGS__)
#define avifEncoderDestroy(...) cavif_library.avifEncoderDestroy(__VA_ARGS__)
#define avifEncoderFinish(...) cavif_library.avifEncoderFinish(__VA_ARGS__)
#define avifFree(...) cavif_library.avifFree(__VA_ARGS__)
#define avifImageCreate(...) cavif_library.avifImageCreate(__VA_ARGS__)
#define avifImageDestroy(...) cavif_library.avifImageDestroy(__VA_ARGS__)
#define avifImageRGBToYUV(...) cavif_library.avifImageRGBToYUV(__VA_ARGS__)
#define avifImageSetMetadataExif(...) cavif_library.avifImageSetMetadataExif(__VA_ARGS__)
#define avifImageSetMetadataXMP(...) cavif_library.avifImageSetMetadataXMP(__VA_ARGS__)
#define avifImageYUVToRGB(...) cavif_library.avifImageYUVToRGB(__VA_ARGS__)
#define avifRGBImageSetDefaults(...) cavif_library.avifRGBImageSetDefaults(__VA_ARGS__)
#define avifRWDataFree(...) cavif_library.avifRWDataFree(__VA_ARGS__)
#define avifResultToString(...) cavif_library.avifResultToString(__VA_ARGS__)
#define avifVersion(...) cavif_library.avifVersion(__VA_ARGS__)
#endif
#endif

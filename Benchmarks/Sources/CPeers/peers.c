#include "peers.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <jpeglib.h>
#include <vips/vips.h>

static void quiet(const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer user) {
    (void)domain, (void)level, (void)message, (void)user;
}

int peers_start(void) {
    if (VIPS_INIT("peers")) return -1;
    g_log_set_handler("VIPS", G_LOG_LEVEL_MASK, quiet, NULL);
    vips_concurrency_set(1);
    vips_cache_set_max(0);
    return 0;
}

size_t peers_vips_thumbnail(const char *path, int width, int height) {
    VipsImage *image = NULL;
    void *bytes = NULL;
    size_t count = 0;
    if (vips_thumbnail(path, &image, width, "height", height, "size", VIPS_SIZE_DOWN, NULL)) {
        vips_error_clear();
        return 0;
    }
    if (vips_jpegsave_buffer(image, &bytes, &count, "strip", TRUE, "Q", 75, NULL)) {
        vips_error_clear();
        count = 0;
    }
    g_object_unref(image);
    g_free(bytes);
    return count;
}

static int rgb_pixels(VipsImage *image, uint8_t **pixels, int *width, int *height) {
    VipsImage *srgb = NULL, *flat = NULL;
    size_t count;
    int result = -1;
    if (!vips_colourspace(image, &srgb, VIPS_INTERPRETATION_sRGB, NULL)) {
        if (!vips_extract_band(srgb, &flat, 0, "n", 3, NULL)) {
            *pixels = vips_image_write_to_memory(flat, &count);
            *width = flat->Xsize;
            *height = flat->Ysize;
            result = *pixels ? 0 : -1;
            g_object_unref(flat);
        }
        g_object_unref(srgb);
    }
    vips_error_clear();
    return result;
}

int peers_vips_pixels(const char *path, int width, int height, uint8_t **pixels, int *out_width, int *out_height) {
    VipsImage *image = NULL;
    if (vips_thumbnail(path, &image, width, "height", height, "size", VIPS_SIZE_FORCE, NULL)) {
        vips_error_clear();
        return -1;
    }
    int result = rgb_pixels(image, pixels, out_width, out_height);
    g_object_unref(image);
    return result;
}

int peers_reference(const char *path, int width, int height, uint8_t **pixels) {
    VipsImage *file = vips_image_new_from_file(path, NULL), *upright = NULL, *wide = NULL, *small = NULL, *rounded = NULL;
    int result = -1, w, h;
    if (file && !vips_autorot(file, &upright, NULL) && !vips_cast_float(upright, &wide, NULL)
        && !vips_resize(wide, &small, (double)width / upright->Xsize, "vscale", (double)height / upright->Ysize,
                        "kernel", VIPS_KERNEL_LANCZOS3, "gap", 0.0, NULL)) {
        VipsImage *rint = NULL;
        if (!vips_rint(small, &rint, NULL) && !vips_cast_uchar(rint, &rounded, NULL)) {
            rounded->Type = VIPS_INTERPRETATION_sRGB;
            result = rgb_pixels(rounded, pixels, &w, &h);
            if (!result && (w != width || h != height)) result = -1;
        }
        if (rint) g_object_unref(rint);
    }
    VipsImage *all[] = {file, upright, wide, small, rounded};
    for (int i = 0; i < 5; i++) if (all[i]) g_object_unref(all[i]);
    vips_error_clear();
    return result;
}

size_t peers_jpeg_decode(const char *path, int scale) {
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    fseek(file, 0, SEEK_END);
    size_t count = (size_t)ftell(file), sum = 0;
    rewind(file);
    unsigned char *bytes = malloc(count);
    if (bytes && fread(bytes, 1, count, file) == count) {
        struct jpeg_decompress_struct decoder;
        struct jpeg_error_mgr errors;
        decoder.err = jpeg_std_error(&errors);
        jpeg_create_decompress(&decoder);
        jpeg_mem_src(&decoder, bytes, count);
        jpeg_read_header(&decoder, TRUE);
        decoder.scale_num = (unsigned)scale;
        decoder.scale_denom = 8;
        jpeg_start_decompress(&decoder);
        JSAMPARRAY rows = (*decoder.mem->alloc_sarray)(
            (j_common_ptr)&decoder, JPOOL_IMAGE, decoder.output_width * (unsigned)decoder.output_components, 16);
        while (decoder.output_scanline < decoder.output_height) sum += jpeg_read_scanlines(&decoder, rows, 16);
        jpeg_finish_decompress(&decoder);
        jpeg_destroy_decompress(&decoder);
    }
    free(bytes);
    fclose(file);
    return sum;
}

void peers_free(void *pixels) { g_free(pixels); }

void peers_usage(double *milliseconds, double *peak) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    *milliseconds = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
    *peak = u.ru_maxrss / 1024.0;
}

#include "cvips.h"

#if !__has_include(<vips/vips.h>)
#error "vips/vips.h is missing. Install libvips-dev (Debian and Ubuntu) or vips (brew)."
#endif
#include <math.h>
#include <string.h>
#include <vips/vips.h>
#if VIPS_MAJOR_VERSION < 8 || (VIPS_MAJOR_VERSION == 8 && VIPS_MINOR_VERSION < 12)
#error "libvips 8.12 or later is needed. Install a newer libvips-dev (Debian and Ubuntu), vips-devel (Fedora) or vips (brew)."
#endif

// How much finer than the target a reduced picture must be, so that the final scaling still has something to filter.
#define MARGIN 1.5

// A library that logs at these levels has found a defect in itself or in its caller: a failed g_return_if_fail(), the
// wrong type of an object. What it does next is not defined.
static gint has_failed_check;

static void note_level(GLogLevelFlags level) {
    if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL)) g_atomic_int_set(&has_failed_check, 1);
}

bool cvips_has_failed_check(void) { return g_atomic_int_get(&has_failed_check); }

static void ignore_log(const char *domain, GLogLevelFlags level, const char *text, void *user) {
    (void)domain; (void)text; (void)user;
    note_level(level);
}

static GLogWriterOutput ignore_structured_log(GLogLevelFlags level, const GLogField *fields, gsize count, gpointer user) {
    (void)fields; (void)count; (void)user;
    note_level(level);
    return G_LOG_WRITER_HANDLED;
}

cvips_status cvips_start(void) {
    // A decoder that needs more than this must fail for want of memory, not write to a disc it cannot reach.
    g_setenv("VIPS_DISC_THRESHOLD", "1g", TRUE);
    // The vector paths of 8.14 write machine code at run time, which the sandbox forbids.
    g_setenv("VIPS_NOVECTOR", "1", TRUE);
    g_log_set_writer_func(ignore_structured_log, NULL, NULL);
    g_log_set_default_handler(ignore_log, NULL);
    if (vips_init("vitrine-worker")) return CVIPS_FAILED;
    vips_concurrency_set(1);
    vips_cache_set_max(0);
    vips_cache_set_max_mem(0);
    vips_cache_set_max_files(0);
#if VIPS_MAJOR_VERSION > 8 || VIPS_MINOR_VERSION >= 13
    // Earlier versions cannot block loaders. This shim calls each loader by its name.
    vips_block_untrusted_set(TRUE);
    vips_operation_block_set("VipsForeignLoadSvg", FALSE);
#endif
    return CVIPS_OK;
}

void cvips_free(void *p) { g_free(p); }

// libvips has no error codes: the most telling words decide.
static cvips_status failed(void) {
    const char *text = vips_error_buffer();
    cvips_status status = CVIPS_CORRUPT;
    if (strstr(text, "class \"") || strstr(text, "is blocked") || strstr(text, "not implemented") ||
        strstr(text, "nsupported") || strstr(text, "not supported") || strstr(text, "no codec"))
        status = CVIPS_UNSUPPORTED;
    else if (strstr(text, "bad page") || strstr(text, "out of range") || strstr(text, "does not contain page"))
        status = CVIPS_NO_PAGE;
    else if (strstr(text, "out of memory") || strstr(text, "nable to allocate") || strstr(text, "annot allocate") ||
             strstr(text, "emory allocation") || strstr(text, "Security limit"))
        status = CVIPS_MEMORY;
    else if (strstr(text, "nd of file") || strstr(text, "end of stream") || strstr(text, "runcated") ||
             strstr(text, "remature") || strstr(text, "nd-of-file") || strstr(text, "too short"))
        status = CVIPS_TRUNCATED;
    vips_error_clear();
    return status;
}

typedef struct {
    const void *bytes;
    size_t count;
    const cvips_request *request;
    VipsFailOn fail_on;
} job;

typedef struct {
    int page, shrink, subifd; // page -1: the loader's default; subifd -1: none
    gboolean thumbnail;
    double scale;
} level;

static VipsImage *load(const job *j, level l) {
    VipsImage *image = NULL;
    void *b = (void *)j->bytes;
    size_t n = j->count;
    int r = -1;
#define COMMON "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", j->fail_on
    switch (j->request->format) {
    case CVIPS_JPEG: r = vips_jpegload_buffer(b, n, &image, "shrink", l.shrink, COMMON, NULL); break;
    case CVIPS_PNG: r = vips_pngload_buffer(b, n, &image, COMMON, NULL); break;
    case CVIPS_WEBP:
        r = vips_webpload_buffer(b, n, &image, "page", l.page, "scale", l.scale, COMMON, NULL);
        break;
    case CVIPS_GIF: r = vips_gifload_buffer(b, n, &image, "page", l.page, COMMON, NULL); break;
    case CVIPS_TIFF:
        r = vips_tiffload_buffer(b, n, &image, "page", l.page, "subifd", l.subifd, COMMON, NULL);
        break;
    case CVIPS_HEIF: 
        // Without a page the loader takes the primary image, which need not be the first one.
        r = l.page > 0
            ? vips_heifload_buffer(b, n, &image, "page", l.page, "thumbnail", l.thumbnail, COMMON, NULL)
            : vips_heifload_buffer(b, n, &image, "thumbnail", l.thumbnail, COMMON, NULL);
        break;
    case CVIPS_SVG: r = vips_svgload_buffer(b, n, &image, "scale", l.scale, COMMON, NULL); break;
    }
#undef COMMON
    if (r && image) {
        g_object_unref(image);
        image = NULL;
    }
    return image;
}

static cvips_status check(const VipsImage *image, const cvips_request *q, cvips_picture *out) {
    int64_t side = MAX(image->Xsize, image->Ysize), pixels = (int64_t)image->Xsize * image->Ysize;
    if (side > q->max_side) {
        out->actual = side;
        return CVIPS_SIDE;
    }
    if (pixels > q->max_pixels) {
        out->actual = pixels;
        return CVIPS_PIXELS;
    }
    return CVIPS_OK;
}

// How many pixels of `image` fall on one of the target, where they are fewer.
static double reduction(const VipsImage *image, const cvips_request *q) {
    if (q->width <= 0 || q->height <= 0) return 1;
    double x = (double)image->Xsize / (double)q->width, y = (double)image->Ysize / (double)q->height;
    return MAX(1, MIN(x, y));
}

static int metadata_int(VipsImage *image, const char *name) {
    int value = 0;
    if (vips_image_get_typeof(image, name) == 0 || vips_image_get_int(image, name, &value)) return 0;
    return value;
}

// A coarser picture in the same file that shows the same: its shape agrees and it is still fine enough.
static gboolean is_level(VipsImage *whole, VipsImage *candidate, const cvips_request *q) {
    double x = (double)whole->Xsize / candidate->Xsize, y = (double)whole->Ysize / candidate->Ysize;
    return x > 1 && fabs(x - y) < 0.02 * x + (double)MAX(whole->Xsize, whole->Ysize) / candidate->Xsize * 0.01 &&
        candidate->Bands == whole->Bands && reduction(candidate, q) >= MARGIN;
}

// TIFF pyramids keep coarser levels in sub-directories, or, in older files, as further pages. The latter cannot be told
// from a document's pages but by their sizes: every one half of the one before.
static level tiff_level(const job *j, VipsImage *whole, level first) {
    level best = first;
    int subs = MIN(metadata_int(whole, "n-subifds"), 16), pages = MIN(vips_image_get_n_pages(whole), 16);
    gboolean by_page = subs == 0 && j->request->page == 0;
    int width = whole->Xsize;
    for (int i = by_page ? 1 : 0; i < (by_page ? pages : subs); i++) {
        level l = first;
        if (by_page) l.page = i;
        else l.subifd = i;
        VipsImage *candidate = load(j, l);
        if (!candidate) break;
        gboolean halves = abs(candidate->Xsize - width / 2) <= 1, fits = is_level(whole, candidate, j->request);
        width = candidate->Xsize;
        g_object_unref(candidate);
        if (by_page && !halves) break;
        if (fits) best = l;
    }
    vips_error_clear();
    return best;
}

// The thumbnail of a HEIF picture, if it has the size asked for and the picture's shape (within 2 %) and channels; else
// the picture. Both are upright here. libvips gives the picture where there is no thumbnail.
static level heif_level(const job *j, VipsImage *whole, level first) {
    const cvips_request *q = j->request;
    level l = first;
    l.thumbnail = TRUE;
    VipsImage *small = load(j, l);
    vips_error_clear();
    if (!small) return first;
    double shape = (double)whole->Xsize / whole->Ysize, own = (double)small->Xsize / small->Ysize;
    gboolean fits = small->Xsize < whole->Xsize && small->Xsize >= q->width && small->Ysize >= q->height &&
        fabs(own / shape - 1) < 0.02 && small->Bands == whole->Bands;
    g_object_unref(small);
    return fits ? l : first;
}

// A drawing that gets a size.
static bool is_sized_drawing(const cvips_request *q) { return q->format == CVIPS_SVG && q->width > 0 && q->height > 0; }

// How much larger than it is the header of such a drawing is read: libvips rounds the sides to pixels.
enum { ENLARGEMENT = 128 };

// The scale at which a drawing has the size asked for or a little more, and both sides are whole pixels. It is fitted into
// the rounded sides, and what they have more would let through what is behind the picture.
static double drawing_scale(const cvips_request *q, const VipsImage *whole, level first) {
    enum { CANDIDATES = 128 };
    static const double invisible = 1.0 / 256;
    double width = whole->Xsize / first.scale, height = whole->Ysize / first.scale;
    double least = MAX((double)q->width / width, (double)q->height / height);
    // An SVG has no pixels of its own: what counts is what will be painted.
    double largest = (double)q->max_side / MAX(width, height);
    if (least >= largest) return largest;
    double best = least, smallest = 1;
    for (int i = 0; i < CANDIDATES && smallest > invisible; i++) {
        double scale = (ceil(least * width - invisible) + i) / width, other = scale * height;
        double rest = fabs(other - round(other));
        if (scale > largest || scale * width * other > (double)q->max_pixels) break;
        if (rest < smallest) {
            smallest = rest;
            best = scale;
        }
    }
    return best;
}

// The cheapest way to load that is fine enough, once the header is known.
static level choose(const job *j, VipsImage *whole, level first) {
    const cvips_request *q = j->request;
    level l = first;
    double f = reduction(whole, q);
    if (is_sized_drawing(q)) {
        l.scale = drawing_scale(q, whole, first);
        return l;
    }
    if (q->format == CVIPS_HEIF && q->allow_thumbnail && q->width > 0 && q->height > 0)
        return heif_level(j, whole, first);
    if (f < 2 * MARGIN) return l;
    switch (q->format) {
    case CVIPS_JPEG: l.shrink = f >= 8 * MARGIN ? 8 : f >= 4 * MARGIN ? 4 : 2; break;
    case CVIPS_WEBP: l.scale = 2 / f; break;
    case CVIPS_TIFF: return tiff_level(j, whole, first);
    default: break;
    }
    return l;
}

// Replaces `*image` with what an operation made of it.
static int replace(VipsImage **image, int result, VipsImage *made) {
    if (result) return -1;
    g_object_unref(*image);
    *image = made;
    return 0;
}

// Averages whole blocks of pixels, with colours weighted by alpha.
static int shrink(VipsImage **image, cvips_picture *out, int factor) {
    out->extent_width = (*image)->Xsize;
    out->extent_height = (*image)->Ysize;
    if (factor < 2) return 0;
    VipsImage *t = NULL;
    if (vips_image_hasalpha(*image) && (*image)->Type != VIPS_INTERPRETATION_CMYK) {
        if (replace(image, vips_premultiply(*image, &t, NULL), t)) return -1;
        out->alpha = CVIPS_PREMULTIPLIED;
    }
    out->extent_width /= factor;
    out->extent_height /= factor;
    // "ceil": the blocks at the right and bottom edge count, though they are only partly covered.
    return replace(image, vips_shrink(*image, &t, factor, factor, "ceil", TRUE, NULL), t);
}

// To 8 bits, or 16 bits if `keep_depth`, and at most 4 channels of grey, RGB or CMYK.
static int convert(VipsImage **image, cvips_picture *out, bool keep_depth) {
    VipsImage *t = NULL;
    VipsInterpretation type = vips_image_guess_interpretation(*image);
    gboolean is_deep = type == VIPS_INTERPRETATION_RGB16 || type == VIPS_INTERPRETATION_GREY16 ||
        (*image)->BandFmt == VIPS_FORMAT_USHORT;
    keep_depth = keep_depth && type != VIPS_INTERPRETATION_CMYK;
    gboolean is_plain = type == VIPS_INTERPRETATION_sRGB || type == VIPS_INTERPRETATION_RGB ||
        type == VIPS_INTERPRETATION_B_W || type == VIPS_INTERPRETATION_CMYK ||
        type == VIPS_INTERPRETATION_MULTIBAND || type == VIPS_INTERPRETATION_HISTOGRAM;
    if (!is_plain && !is_deep) {
        if (replace(image, vips_colourspace(*image, &t, VIPS_INTERPRETATION_sRGB, NULL), t)) return -1;
        out->is_srgb = true;
        type = VIPS_INTERPRETATION_sRGB;
    } else if (is_deep) {
        double scale = keep_depth ? 1 : 255.0 / 65535, half = 0.5; // cut off, so: rounded
        if (replace(image, vips_linear(*image, &t, &scale, &half, 1, "uchar", !keep_depth, NULL), t)) return -1;
        out->is_deep = keep_depth;
        if (keep_depth && replace(image, vips_cast(*image, &t, VIPS_FORMAT_USHORT, NULL), t)) return -1;
    }
    if (out->is_deep) {
        // Nothing is left to do.
    } else if ((*image)->BandFmt == VIPS_FORMAT_FLOAT || (*image)->BandFmt == VIPS_FORMAT_DOUBLE) {
        // A cast cuts off; premultiplied colours and averages are to be rounded.
        double one = 1, half = 0.5;
        if (replace(image, vips_linear(*image, &t, &one, &half, 1, "uchar", TRUE, NULL), t)) return -1;
    } else if ((*image)->BandFmt != VIPS_FORMAT_UCHAR) {
        if (replace(image, vips_cast(*image, &t, VIPS_FORMAT_UCHAR, NULL), t)) return -1;
    }
    gboolean cmyk = type == VIPS_INTERPRETATION_CMYK && (*image)->Bands >= 4;
    int bands = (*image)->Bands, keep = cmyk ? 4 : bands > 4 ? 3 : bands;
    if (keep != bands && replace(image, vips_extract_band(*image, &t, 0, "n", keep, NULL), t)) return -1;
    out->model = cmyk ? CVIPS_CMYK : keep <= 2 ? CVIPS_GRAY : CVIPS_RGB;
    gboolean has_alpha = !cmyk && (keep == 2 || keep == 4);
    if (!has_alpha) out->alpha = CVIPS_OPAQUE;
    else if (out->alpha == CVIPS_OPAQUE) out->alpha = CVIPS_STRAIGHT;
    return 0;
}

// Takes back what the loader did to make the picture upright.
static int unturn(VipsImage **image, cvips_picture *out, int orientation) {
    if (orientation <= 1 || orientation > 8) return 0;
    VipsImage *t = NULL;
    // Turning needs random access, of which a streaming loader has none.
    if (!(t = vips_image_copy_memory(*image))) return -1;
    g_object_unref(*image);
    *image = t;
    static const VipsAngle angles[] = {
        VIPS_ANGLE_D0, VIPS_ANGLE_D0, VIPS_ANGLE_D0, VIPS_ANGLE_D180, VIPS_ANGLE_D180,
        VIPS_ANGLE_D90, VIPS_ANGLE_D270, VIPS_ANGLE_D270, VIPS_ANGLE_D90,
    };
    // 5 and 7, mirrored at a diagonal, undo themselves; so do 2 and 4 and 3. 6 and 8 undo each other.
    VipsAngle angle = orientation == 2 ? VIPS_ANGLE_D0 : angles[orientation];
    gboolean mirror = orientation == 2 || orientation == 4 || orientation == 5 || orientation == 7;
    if (angle != VIPS_ANGLE_D0 && replace(image, vips_rot(*image, &t, angle, NULL), t)) return -1;
    if (mirror && replace(image, vips_flip(*image, &t, VIPS_DIRECTION_HORIZONTAL, NULL), t)) return -1;
    if (orientation >= 5) {
        double swap = out->extent_width;
        out->extent_width = out->extent_height;
        out->extent_height = swap;
    }
    return 0;
}

// Pixels around a part that the scaling may take colour from.
#define SURROUNDINGS 8

// Leaves the part that is wanted, so that other tiles and strips are not decoded. `image` may be a coarser level of the
// picture that is `width` by `height`, and is going to be reduced by `factor`.
static int crop(VipsImage **image, cvips_picture *out, const cvips_request *q, int width, int height, int factor) {
    if (q->format != CVIPS_TIFF || q->region_width <= 0 || q->region_height <= 0) return 0;
    int64_t right = (int64_t)q->region_x + q->region_width, bottom = (int64_t)q->region_y + q->region_height;
    int own_width = (*image)->Xsize, own_height = (*image)->Ysize;
    // Levels are halves, rounded up or down.
    int64_t scale = lround((double)width / own_width);
    if (q->region_x < 0 || q->region_y < 0 || right > width || bottom > height || scale < 1 ||
        llabs(width / scale - own_width) > 1 || llabs(height / scale - own_height) > 1)
        return 0;
    int64_t step = MAX(1, factor), across = scale * step, around = SURROUNDINGS;
    int64_t left = MAX(0, q->region_x / across - around) * step, top = MAX(0, q->region_y / across - around) * step;
    right = MIN(own_width, ((right + across - 1) / across + around) * step);
    bottom = MIN(own_height, ((bottom + across - 1) / across + around) * step);
    if (left >= right || top >= bottom || (right - left) * (bottom - top) * 10 >= 9 * (int64_t)own_width * own_height)
        return 0;
    VipsImage *t = NULL;
    if (replace(image, vips_extract_area(*image, &t, left, top, right - left, bottom - top, NULL), t)) return -1;
    out->has_region = true;
    out->region_x = left * scale;
    out->region_y = top * scale;
    out->region_width = (right == own_width ? width : MIN(width, right * scale)) - left * scale;
    out->region_height = (bottom == own_height ? height : MIN(height, bottom * scale)) - top * scale;
    return 0;
}

static cvips_status decode(const job *j, cvips_picture *out) {
    const cvips_request *q = j->request;
    cvips_request turned = *q;
    if (q->orientation >= 5) {
        turned.width = q->height;
        turned.height = q->width;
    }
    job upright = *j;
    upright.request = &turned;
    level first = {q->page, 1, -1, FALSE, is_sized_drawing(q) ? ENLARGEMENT : 1};
    VipsImage *image = load(&upright, first);
    if (!image && is_sized_drawing(q)) {
        // The enlarged sides may be more than the library accepts.
        vips_error_clear();
        first.scale = 1;
        image = load(&upright, first);
    }
    if (!image) return failed();
    int width = image->Xsize, height = image->Ysize;
    cvips_status status = is_sized_drawing(q) ? CVIPS_OK : check(image, q, out);
    level best = status ? first : choose(&upright, image, first);
    if (!status && memcmp(&best, &first, sizeof best)) {
        g_object_unref(image);
        image = load(&upright, best);
        if (!image) return failed();
        status = check(image, q, out);
    }
    int factor = (int)floor(reduction(image, &turned) / MARGIN);
    if (!status && crop(&image, out, &turned, width, height, factor)) status = failed();
    if (!status &&
        (shrink(&image, out, factor) || convert(&image, out, q->keep_depth) || unturn(&image, out, q->orientation) ||
         !(out->pixels = vips_image_write_to_memory(image, &out->count))))
        status = failed();
    if (!status) {
        out->width = image->Xsize;
        out->height = image->Ysize;
        out->channels = image->Bands;
        out->extent_width = MIN(out->extent_width, out->width);
        out->extent_height = MIN(out->extent_height, out->height);
    }
    g_object_unref(image);
    return status;
}

cvips_status cvips_decode(const void *bytes, size_t count, const cvips_request *q, cvips_picture *out) {
    job j = {bytes, count, q, VIPS_FAIL_ON_TRUNCATED};
    memset(out, 0, sizeof *out);
    vips_error_clear();
    cvips_status status = decode(&j, out);
    cvips_request plain = *q;
    if (status && q->allow_thumbnail) {
        // What is wrong with a thumbnail need not be wrong with the picture.
        plain.allow_thumbnail = false;
        j.request = &plain;
        memset(out, 0, sizeof *out);
        status = decode(&j, out);
    }
    if (q->allow_partial && (status == CVIPS_TRUNCATED || status == CVIPS_CORRUPT)) {
        j.fail_on = VIPS_FAIL_ON_NONE;
        memset(out, 0, sizeof *out);
        cvips_status again = decode(&j, out);
        if (!again) {
            out->is_partial = true;
            return CVIPS_OK;
        }
    }
    return status;
}

const char *cvips_version(void) { return vips_version_string(); }

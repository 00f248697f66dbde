// Encoding from red, green, blue and alpha.
#include "error.h"
#include <stdlib.h>
#include <string.h>

// A segment's length counts itself, in 16 bits.
#define SEGMENT 65533

static const char exif_name[] = "Exif\0";                          // six bytes with the final zero
static const char xmp_name[] = "http://ns.adobe.com/xap/1.0/";      // with its final zero

typedef struct {
  struct jpeg_destination_mgr base;
  uint8_t *bytes;
  size_t capacity;
} output;

typedef struct {
  struct jpeg_compress_struct info;
  cjpeg_errors errors;
  output out;
  uint8_t *row;
} encoder;

static void output_start(j_compress_ptr info) {
  output *out = (output *)info->dest;
  out->base.next_output_byte = out->bytes;
  out->base.free_in_buffer = out->capacity;
}

static boolean output_grow(j_compress_ptr info) {
  output *out = (output *)info->dest;
  size_t used = out->capacity;  // the library calls this when the whole buffer is full
  uint8_t *bytes = realloc(out->bytes, used * 2);
  if (!bytes) cjpeg_errors_raise((cjpeg_errors *)info->err, CJPEG_MEMORY);
  out->bytes = bytes;
  out->capacity = used * 2;
  out->base.next_output_byte = bytes + used;
  out->base.free_in_buffer = used;
  return TRUE;
}

static void output_end(j_compress_ptr info) { (void)info; }

static void write_segment(j_compress_ptr info, const char *name, size_t name_size, const uint8_t *data, size_t size) {
  jpeg_write_m_header(info, JPEG_APP0 + 1, (unsigned)(name_size + size));
  for (size_t i = 0; i < name_size; i++) jpeg_write_m_byte(info, name[i]);
  for (size_t i = 0; i < size; i++) jpeg_write_m_byte(info, data[i]);
}

static unsigned over_white(unsigned color, unsigned alpha) { return (color * alpha + 255 * (255 - alpha) + 127) / 255; }

static void compose_row(uint8_t *row, const uint8_t *pixels, uint32_t width, cjpeg_alpha alpha) {
  for (uint32_t x = 0; x < width; x++, row += 4, pixels += 4)
    for (int i = 0; i < 3; i++) {
      unsigned v = alpha == CJPEG_STRAIGHT ? over_white(pixels[i], pixels[3]) : pixels[i] + 255u - pixels[3];
      row[i] = (uint8_t)(v > 255 ? 255 : v);
    }
}

static void configure(struct jpeg_compress_struct *info, const cjpeg_picture *picture) {
  info->image_width = picture->width;
  info->image_height = picture->height;
  info->input_components = 4;
  info->in_color_space = JCS_EXT_RGBX;
  jpeg_set_defaults(info);
  jpeg_set_quality(info, picture->quality, TRUE);
  info->optimize_coding = TRUE;
  info->dct_method = JDCT_ISLOW;
  info->comp_info[0].h_samp_factor = info->comp_info[0].v_samp_factor = picture->full_chroma ? 1 : 2;
  if (picture->progressive) jpeg_simple_progression(info);
}

static void encode(encoder *e, const cjpeg_picture *picture) {
  struct jpeg_compress_struct *info = &e->info;
  jpeg_create_compress(info);
  info->dest = &e->out.base;
  configure(info, picture);
  jpeg_start_compress(info, TRUE);
  if (picture->exif) write_segment(info, exif_name, sizeof exif_name, picture->exif, picture->exif_size);
  if (picture->xmp) write_segment(info, xmp_name, sizeof xmp_name, picture->xmp, picture->xmp_size);
  for (uint32_t y = 0; y < picture->height; y++) {
    const uint8_t *pixels = picture->pixels + (size_t)y * picture->bytes_per_row;
    if (e->row) compose_row(e->row, pixels, picture->width, picture->alpha);
    JSAMPROW row = e->row ? e->row : (JSAMPROW)pixels;
    jpeg_write_scanlines(info, &row, 1);
  }
  jpeg_finish_compress(info);
}

size_t cjpeg_maximum_exif_size(void) { return SEGMENT - sizeof exif_name; }
size_t cjpeg_maximum_xmp_size(void) { return SEGMENT - sizeof xmp_name; }

static cjpeg_status encoder_prepare(encoder *e, const cjpeg_picture *picture, char *message) {
  if (picture->width == 0 || picture->height == 0 || picture->width > JPEG_MAX_DIMENSION ||
      picture->height > JPEG_MAX_DIMENSION) {
    snprintf(message, JMSG_LENGTH_MAX, "a side must be from 1 to %ld pixels", JPEG_MAX_DIMENSION);
    return CJPEG_REFUSED;
  }
  if (picture->exif_size > cjpeg_maximum_exif_size() || picture->xmp_size > cjpeg_maximum_xmp_size()) {
    snprintf(message, JMSG_LENGTH_MAX, "metadata does not fit into one segment of 64 KiB");
    return CJPEG_REFUSED;
  }
  e->out.capacity = 16 * 1024 + (size_t)picture->width * picture->height / 8;
  e->out.bytes = malloc(e->out.capacity);
  e->row = picture->alpha == CJPEG_OPAQUE ? NULL : malloc((size_t)picture->width * 4);
  if (e->out.bytes && (e->row || picture->alpha == CJPEG_OPAQUE)) return CJPEG_OK;
  snprintf(message, JMSG_LENGTH_MAX, "no memory");
  return CJPEG_MEMORY;
}

cjpeg_status cjpeg_encode(const cjpeg_picture *picture, uint8_t **bytes, size_t *size, char *message) {
  message[0] = 0;
  encoder *e = calloc(1, sizeof *e);
  if (!e) return CJPEG_MEMORY;
  cjpeg_status status = encoder_prepare(e, picture, message);
  if (status == CJPEG_OK) {
    cjpeg_errors_install(&e->errors);
    e->info.err = &e->errors.base;
    e->out.base.init_destination = output_start;
    e->out.base.empty_output_buffer = output_grow;
    e->out.base.term_destination = output_end;
    if (setjmp(e->errors.jump) == 0) {
      encode(e, picture);
      *bytes = e->out.bytes;
      *size = e->out.capacity - e->out.base.free_in_buffer;
      e->out.bytes = NULL;
    } else {
      memcpy(message, e->errors.message, JMSG_LENGTH_MAX);
    }
    status = e->errors.status;
    jpeg_destroy_compress(&e->info);
  }
  free(e->out.bytes);
  free(e->row);
  free(e);
  return status;
}

void cjpeg_free(void *memory) { free(memory); }

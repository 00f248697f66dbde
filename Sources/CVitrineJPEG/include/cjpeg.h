// JPEG by libjpeg-turbo behind plain types. Errors are values: the library's longjmp never leaves this target.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CJPEG_OK = 0,
  CJPEG_CORRUPT,     // the library refused the bytes
  CJPEG_UNSUPPORTED, // a variety the library does not decode
  CJPEG_MEMORY,      // more coefficient memory than allowed, or none left
  CJPEG_SCANS,       // more scans than allowed
  CJPEG_READ,        // the read callback failed
  CJPEG_CANCELLED,   // the poll callback said so
  CJPEG_REFUSED,     // encoder: the picture or a setting is out of range
} cjpeg_status;

// How samples come out of a decoder.
typedef enum {
  CJPEG_GRAY = 1,  // one plane, one channel
  CJPEG_RGB,       // one plane, three channels
  CJPEG_YCBCR,     // three planes, chroma as stored or finer
  CJPEG_CMYK,      // one plane, four channels
} cjpeg_model;

// Reads up to count bytes at an offset of the input: the bytes read, 0 at the end, negative on failure.
typedef ptrdiff_t (*cjpeg_read)(void *context, void *buffer, size_t count, size_t offset);
// Nonzero stops the work. Called once a row of MCUs.
typedef int (*cjpeg_poll)(void *context);

typedef struct {
  uint32_t width, height;
  cjpeg_model model;        // what start gives, with planes allowed
  int components;
  int needs_coefficients;   // several scans: the whole picture is held as coefficients
  uint64_t coefficient_bytes;
} cjpeg_header;

typedef struct {
  uint32_t width, height;         // samples of the plane that belong to the picture
  uint32_t padded_width, padded_height;  // samples that must fit into a row and rows that must exist
  double extent_width, extent_height;    // samples the picture spans, fractions included
} cjpeg_plane;

typedef struct {
  cjpeg_model model;
  int plane_count;
  int channels;
  cjpeg_plane planes[3];
} cjpeg_layout;

typedef struct {
  int eighths;        // 1, 2, 4 or 8: scale of the result
  int planar;         // 1: YCbCr as planes, neither upsampled nor converted; 2: only if planes of color are smaller
  uint64_t maximum_coefficient_bytes;
  int maximum_scans;
} cjpeg_decode_options;

typedef struct cjpeg_decoder cjpeg_decoder;

// NULL when there is no memory.
cjpeg_decoder *cjpeg_decoder_create(cjpeg_read read, cjpeg_poll poll, void *context);
void cjpeg_decoder_destroy(cjpeg_decoder *decoder);
// The three steps of a decode, in this order; after a failure only destroy may follow.
cjpeg_status cjpeg_decoder_read_header(cjpeg_decoder *decoder, cjpeg_header *header);
cjpeg_status cjpeg_decoder_start(cjpeg_decoder *decoder, const cjpeg_decode_options *options, cjpeg_layout *layout);
// Between start and next_rows, for one plane: leaves out all samples but those of columns x to x + width and of rows y to
// y + height. The library widens the columns to whole blocks, which the numbers and the layout then say.
cjpeg_status cjpeg_decoder_crop(cjpeg_decoder *decoder, uint32_t *x, uint32_t y, uint32_t *width, uint32_t height,
                                cjpeg_layout *layout);
// Fills the planes the layout asked for.
cjpeg_status cjpeg_decoder_finish(cjpeg_decoder *decoder, uint8_t *const planes[3], const size_t bytes_per_row[3]);
// Instead of finish, for one plane: the next count rows, or as many as there are left. Call it until no row is left.
cjpeg_status cjpeg_decoder_next_rows(cjpeg_decoder *decoder, uint8_t *rows, size_t bytes_per_row, unsigned count);
// Whether data was missing or damaged; the rest has been filled in.
int cjpeg_decoder_is_truncated(const cjpeg_decoder *decoder);
int cjpeg_decoder_is_damaged(const cjpeg_decoder *decoder);
// Whether all bytes were read and more were wanted.
int cjpeg_decoder_reached_end(const cjpeg_decoder *decoder);
// Rows of the picture at full size, from the top, that the data of a truncated file reaches; all rows of others.
uint32_t cjpeg_decoder_filled_rows(const cjpeg_decoder *decoder);

// What the fourth channel of the pixels to encode means.
typedef enum { CJPEG_OPAQUE = 0, CJPEG_STRAIGHT, CJPEG_PREMULTIPLIED } cjpeg_alpha;

typedef struct {
  const uint8_t *pixels;  // red, green, blue, alpha
  uint32_t width, height;
  size_t bytes_per_row;
  cjpeg_alpha alpha;      // other than opaque: composed over white
  int quality;            // 1...100
  int full_chroma;        // nonzero: 4:4:4, else 4:2:0
  int progressive;
  const uint8_t *exif;    // a TIFF structure, or NULL
  size_t exif_size;
  const uint8_t *xmp;     // XML, or NULL
  size_t xmp_size;
} cjpeg_picture;

// At most this many bytes fit into the one segment that Exif and XMP each have.
size_t cjpeg_maximum_exif_size(void);
size_t cjpeg_maximum_xmp_size(void);

// Gives memory the caller frees with cjpeg_free. The message buffer has room for 200 bytes.
cjpeg_status cjpeg_encode(const cjpeg_picture *picture, uint8_t **bytes, size_t *size, char *message);
void cjpeg_free(void *memory);

// The version of the headers of libjpeg-turbo; the library does not tell its own.
const char *cjpeg_version(void);

#ifdef __cplusplus
}
#endif

// Decoding: header, scaled decode to rows or planes.
#include "error.h"
#include <stdlib.h>
#include <string.h>

#define WINDOW (64 * 1024)

struct cjpeg_decoder {
  struct jpeg_decompress_struct info;
  struct jpeg_source_mgr source;
  struct jpeg_progress_mgr progress;
  cjpeg_errors errors;
  cjpeg_read read;
  cjpeg_poll poll;
  void *context;
  size_t offset;  // of the byte behind the window
  int hit_end;    // an end of image was invented
  uint32_t filled_rows;  // rows of MCUs that had arrived then
  int maximum_scans;
  uint8_t window[WINDOW];
};

static cjpeg_decoder *owner(j_decompress_ptr info) { return info->client_data; }

static void poll_or_raise(cjpeg_decoder *decoder) {
  if (decoder->poll && decoder->poll(decoder->context)) cjpeg_errors_raise(&decoder->errors, CJPEG_CANCELLED);
}

static void source_start(j_decompress_ptr info) { (void)info; }
static void source_end(j_decompress_ptr info) { (void)info; }

// How many rows of MCUs the samples of brightness have come for. The library reads some bytes ahead, so that it may be
// one more.
static uint32_t filled_rows(const struct jpeg_decompress_struct *info) {
  // Later scans, of color or of finer bits, find every row filled.
  int is_first = 0;
  for (int i = 0; i < info->comps_in_scan; i++) is_first |= info->cur_comp_info[i] == &info->comp_info[0];
  if (info->progressive_mode) is_first &= info->Ss == 0 && info->Ah == 0;
  return is_first ? info->input_iMCU_row : info->total_iMCU_rows;
}

static boolean source_fill(j_decompress_ptr info) {
  cjpeg_decoder *decoder = owner(info);
  ptrdiff_t count = decoder->read(decoder->context, decoder->window, WINDOW, decoder->offset);
  if (count < 0 || count > WINDOW) cjpeg_errors_raise(&decoder->errors, CJPEG_READ);
  if (count == 0) {
    // The library wants an end it can recognise; whether data was missing shows by its warnings.
    static const uint8_t end[] = {0xFF, JPEG_EOI};
    if (!decoder->hit_end) decoder->filled_rows = filled_rows(info);
    decoder->hit_end = 1;
    memcpy(decoder->window, end, sizeof end);
    count = sizeof end;
  } else {
    decoder->offset += (size_t)count;
  }
  decoder->source.next_input_byte = decoder->window;
  decoder->source.bytes_in_buffer = (size_t)count;
  return TRUE;
}

static void source_skip(j_decompress_ptr info, long count) {
  cjpeg_decoder *decoder = owner(info);
  if (count <= 0) return;
  size_t left = decoder->source.bytes_in_buffer, wanted = (size_t)count;
  if (wanted <= left) {
    decoder->source.next_input_byte += wanted;
    decoder->source.bytes_in_buffer -= wanted;
  } else {
    decoder->offset += wanted - left;
    decoder->source.next_input_byte = decoder->window;
    decoder->source.bytes_in_buffer = 0;
  }
}

// Called once a row of MCUs while scans are read into memory.
static void on_progress(j_common_ptr common) {
  j_decompress_ptr info = (j_decompress_ptr)common;
  cjpeg_decoder *decoder = owner(info);
  poll_or_raise(decoder);
  if (decoder->maximum_scans > 0 && info->input_scan_number > decoder->maximum_scans)
    cjpeg_errors_raise(&decoder->errors, CJPEG_SCANS);
}

cjpeg_decoder *cjpeg_decoder_create(cjpeg_read read, cjpeg_poll poll, void *context) {
  cjpeg_decoder *decoder = malloc(sizeof *decoder);
  if (!decoder) return NULL;
  memset(decoder, 0, offsetof(cjpeg_decoder, window));
  decoder->read = read;
  decoder->poll = poll;
  decoder->context = context;
  cjpeg_errors_install(&decoder->errors);
  decoder->info.err = &decoder->errors.base;
  if (setjmp(decoder->errors.jump)) {
    cjpeg_decoder_destroy(decoder);
    return NULL;
  }
  jpeg_create_decompress(&decoder->info);
  decoder->info.client_data = decoder;
  decoder->source.init_source = source_start;
  decoder->source.fill_input_buffer = source_fill;
  decoder->source.skip_input_data = source_skip;
  decoder->source.resync_to_restart = jpeg_resync_to_restart;
  decoder->source.term_source = source_end;
  decoder->source.next_input_byte = decoder->window;
  decoder->info.src = &decoder->source;
  decoder->progress.progress_monitor = on_progress;
  decoder->info.progress = &decoder->progress;
  return decoder;
}

void cjpeg_decoder_destroy(cjpeg_decoder *decoder) {
  if (!decoder) return;
  jpeg_destroy_decompress(&decoder->info);
  free(decoder);
}

static cjpeg_model natural_model(const struct jpeg_decompress_struct *info) {
  switch (info->jpeg_color_space) {
  case JCS_GRAYSCALE: return CJPEG_GRAY;
  case JCS_RGB: return CJPEG_RGB;
  case JCS_YCbCr: return CJPEG_YCBCR;
  case JCS_CMYK:
  case JCS_YCCK: return CJPEG_CMYK;
  default: return info->num_components == 1 ? CJPEG_GRAY : 0;
  }
}

static uint64_t coefficient_bytes(const struct jpeg_decompress_struct *info) {
  uint64_t total = 0;
  for (int i = 0; i < info->num_components; i++) {
    const jpeg_component_info *c = &info->comp_info[i];
    uint64_t columns = ((uint64_t)c->width_in_blocks + (uint64_t)c->h_samp_factor - 1) / (uint64_t)c->h_samp_factor;
    uint64_t rows = ((uint64_t)c->height_in_blocks + (uint64_t)c->v_samp_factor - 1) / (uint64_t)c->v_samp_factor;
    total += columns * (uint64_t)c->h_samp_factor * rows * (uint64_t)c->v_samp_factor * sizeof(JBLOCK);
  }
  return total;
}

cjpeg_status cjpeg_decoder_read_header(cjpeg_decoder *decoder, cjpeg_header *header) {
  if (setjmp(decoder->errors.jump)) return decoder->errors.status;
  struct jpeg_decompress_struct *info = &decoder->info;
  jpeg_read_header(info, TRUE);
  memset(header, 0, sizeof *header);
  header->width = info->image_width;
  header->height = info->image_height;
  header->model = natural_model(info);
  header->components = info->num_components;
  header->needs_coefficients = jpeg_has_multiple_scans(info);
  header->coefficient_bytes = coefficient_bytes(info);
  return header->model ? CJPEG_OK : CJPEG_UNSUPPORTED;
}

// Whether the library makes the planes of color as large as that of brightness at this scale: it transforms blocks of
// fewer samples finer, up to their 8 x 8.
static int has_equal_planes(const struct jpeg_decompress_struct *info, int eighths) {
  for (int i = 0; i < info->num_components; i++) {
    int h = info->comp_info[i].h_samp_factor, v = info->comp_info[i].v_samp_factor;
    int across = info->max_h_samp_factor / h, down = info->max_v_samp_factor / v;
    if (across * h != info->max_h_samp_factor || down * v != info->max_v_samp_factor || across != down) return 0;
    if (across != 1 && across != 2 && across != 4) return 0;
    if (across * eighths > DCTSIZE) return 0;
  }
  return 1;
}

static void choose_output(struct jpeg_decompress_struct *info, const cjpeg_decode_options *options) {
  info->scale_num = (unsigned)options->eighths;
  info->scale_denom = 8;
  info->dct_method = JDCT_ISLOW;
  info->do_fancy_upsampling = TRUE;
  switch (natural_model(info)) {
  case CJPEG_GRAY: info->out_color_space = JCS_GRAYSCALE; break;
  case CJPEG_CMYK: info->out_color_space = JCS_CMYK; break;
  case CJPEG_YCBCR:
    info->raw_data_out = options->planar == 1 || (options->planar && !has_equal_planes(info, options->eighths));
    info->out_color_space = info->raw_data_out ? JCS_YCbCr : JCS_RGB;
    break;
  default: info->out_color_space = JCS_RGB;
  }
}

static void describe_planes(const struct jpeg_decompress_struct *info, cjpeg_layout *layout) {
  layout->model = CJPEG_YCBCR;
  layout->plane_count = 3;
  layout->channels = 1;
  for (int i = 0; i < 3; i++) {
    const jpeg_component_info *c = &info->comp_info[i];
    cjpeg_plane *plane = &layout->planes[i];
    uint32_t size = (uint32_t)c->DCT_scaled_size;
    plane->width = c->downsampled_width;
    plane->height = c->downsampled_height;
    plane->padded_width = c->width_in_blocks * size;
    plane->padded_height = info->total_iMCU_rows * (uint32_t)c->v_samp_factor * size;
    plane->extent_width = (double)info->image_width * c->h_samp_factor * size / (8.0 * info->max_h_samp_factor);
    plane->extent_height = (double)info->image_height * c->v_samp_factor * size / (8.0 * info->max_v_samp_factor);
  }
}

static void describe_rows(const struct jpeg_decompress_struct *info, cjpeg_layout *layout) {
  layout->model = natural_model(info) == CJPEG_YCBCR ? CJPEG_RGB : natural_model(info);
  layout->plane_count = 1;
  layout->channels = info->output_components;
  cjpeg_plane *plane = &layout->planes[0];
  plane->width = plane->padded_width = info->output_width;
  plane->height = plane->padded_height = info->output_height;
  plane->extent_width = (double)info->image_width * info->scale_num / info->scale_denom;
  plane->extent_height = (double)info->image_height * info->scale_num / info->scale_denom;
}

cjpeg_status cjpeg_decoder_start(cjpeg_decoder *decoder, const cjpeg_decode_options *options, cjpeg_layout *layout) {
  if (setjmp(decoder->errors.jump)) return decoder->errors.status;
  struct jpeg_decompress_struct *info = &decoder->info;
  if (jpeg_has_multiple_scans(info) && coefficient_bytes(info) > options->maximum_coefficient_bytes)
    return CJPEG_MEMORY;
  decoder->maximum_scans = options->maximum_scans;
  choose_output(info, options);
  jpeg_start_decompress(info);
  memset(layout, 0, sizeof *layout);
  if (info->raw_data_out) describe_planes(info, layout);
  else describe_rows(info, layout);
  return CJPEG_OK;
}

cjpeg_status cjpeg_decoder_crop(cjpeg_decoder *decoder, uint32_t *x, uint32_t y, uint32_t *width, uint32_t height,
                                cjpeg_layout *layout) {
  if (setjmp(decoder->errors.jump)) return decoder->errors.status;
  struct jpeg_decompress_struct *info = &decoder->info;
  if (info->raw_data_out || info->output_scanline > 0 || y + height > info->output_height) return CJPEG_UNSUPPORTED;
  JDIMENSION left = *x, columns = *width;
  jpeg_crop_scanline(info, &left, &columns);
  *x = left;
  *width = columns;
  // In steps of whole rows of blocks, each of which can be cancelled.
  while (info->output_scanline < y) {
    poll_or_raise(decoder);
    JDIMENSION rest = y - info->output_scanline;
    jpeg_skip_scanlines(info, rest < 512 ? rest : 512);
  }
  cjpeg_plane *plane = &layout->planes[0];
  plane->width = plane->padded_width = info->output_width;
  plane->height = plane->padded_height = height;
  plane->extent_width = info->output_width;
  plane->extent_height = height;
  return CJPEG_OK;
}

static void finish_planes(cjpeg_decoder *decoder, uint8_t *const planes[3], const size_t bytes_per_row[3]) {
  struct jpeg_decompress_struct *info = &decoder->info;
  JSAMPROW rows[3][4 * DCTSIZE];
  JSAMPARRAY arrays[3] = {rows[0], rows[1], rows[2]};
  unsigned lines = (unsigned)(info->max_v_samp_factor * info->min_DCT_scaled_size);
  for (unsigned row = 0; row < info->total_iMCU_rows; row++) {
    poll_or_raise(decoder);
    for (int i = 0; i < 3; i++) {
      const jpeg_component_info *c = &info->comp_info[i];
      size_t count = (size_t)(c->v_samp_factor * c->DCT_scaled_size);
      for (size_t y = 0; y < count; y++) rows[i][y] = planes[i] + (row * count + y) * bytes_per_row[i];
    }
    jpeg_read_raw_data(info, arrays, lines);
  }
}

static void read_rows(cjpeg_decoder *decoder, uint8_t *plane, size_t bytes_per_row, unsigned count) {
  struct jpeg_decompress_struct *info = &decoder->info;
  JSAMPROW rows[8];
  while (count > 0 && info->output_scanline < info->output_height) {
    unsigned some = count < 8 ? count : 8;
    for (unsigned y = 0; y < some; y++) rows[y] = plane + y * bytes_per_row;
    unsigned done = jpeg_read_scanlines(info, rows, some);
    plane += done * bytes_per_row;
    count -= done;
  }
}

static void finish_rows(cjpeg_decoder *decoder, uint8_t *plane, size_t bytes_per_row) {
  struct jpeg_decompress_struct *info = &decoder->info;
  while (info->output_scanline < info->output_height) {
    poll_or_raise(decoder);
    read_rows(decoder, plane + info->output_scanline * bytes_per_row, bytes_per_row, 8);
  }
}

cjpeg_status cjpeg_decoder_next_rows(cjpeg_decoder *decoder, uint8_t *rows, size_t bytes_per_row, unsigned count) {
  if (setjmp(decoder->errors.jump)) return decoder->errors.status;
  poll_or_raise(decoder);
  read_rows(decoder, rows, bytes_per_row, count);
  return CJPEG_OK;
}

cjpeg_status cjpeg_decoder_finish(cjpeg_decoder *decoder, uint8_t *const planes[3], const size_t bytes_per_row[3]) {
  if (setjmp(decoder->errors.jump)) return decoder->errors.status;
  if (decoder->info.raw_data_out) finish_planes(decoder, planes, bytes_per_row);
  else finish_rows(decoder, planes[0], bytes_per_row[0]);
  return CJPEG_OK;
}

// Whether every component came, and of a progressive picture every bit of every coefficient.
static int has_all_scans(const struct jpeg_decompress_struct *info) {
  for (int i = 0; i < info->num_components; i++)
    if (!info->comp_info[i].quant_table) return 0;
  if (!info->progressive_mode || !info->coef_bits) return 1;
  for (int i = 0; i < info->num_components; i++)
    for (int k = 0; k < DCTSIZE2; k++)
      if (info->coef_bits[i][k] != 0) return 0;
  return 1;
}

int cjpeg_decoder_is_truncated(const cjpeg_decoder *decoder) {
  return decoder->hit_end && (decoder->errors.damaged || !has_all_scans(&decoder->info));
}

int cjpeg_decoder_reached_end(const cjpeg_decoder *decoder) { return decoder->hit_end; }

uint32_t cjpeg_decoder_filled_rows(const cjpeg_decoder *decoder) {
  const struct jpeg_decompress_struct *info = &decoder->info;
  if (!cjpeg_decoder_is_truncated(decoder)) return info->image_height;
  uint64_t rows = (uint64_t)decoder->filled_rows * (uint64_t)info->max_v_samp_factor * DCTSIZE;
  if (rows >= info->image_height) return info->image_height;
  // The last row of subsampled color is interpolated with the one below.
  return rows > 0 && !info->raw_data_out ? (uint32_t)rows - (uint32_t)info->max_v_samp_factor : (uint32_t)rows;
}

int cjpeg_decoder_is_damaged(const cjpeg_decoder *decoder) { return decoder->errors.damaged; }


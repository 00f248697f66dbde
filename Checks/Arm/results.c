// Prints what the C parts of Vitrine compute, one line a part: its name and a hash. Scripts/test-arm compares the lines of
// two processors. All inputs are made here or are files of Samples.
#include <carchive.h>
#include <cavif.h>
#include <cfilesystem.h>
#include <cjp2.h>
#include <cjpeg.h>
#include <cjxl.h>
#include <cpixels.h>
#include <cpng.h>
#include <csqlite.h>
#include <ctiff.h>
#include <cwebp.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Numbers of xorshift64 (George Marsaglia, Xorshift RNGs, 2003).
static uint64_t state = 0x9E3779B97F4A7C15;
static uint32_t number(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32);
}
// Also with values at the ends of the range, where kernels limit or wrap around.
static int16_t word(void) {
  uint32_t n = number();
  switch (n & 15) {
  case 0: return INT16_MIN;
  case 1: return INT16_MAX;
  case 2: return 0;
  default: return (int16_t)(n >> 16);
  }
}

// FNV-1a with 64 bits (http://www.isthe.com/chongo/tech/comp/fnv).
static uint64_t hash = 0;
static void begin(void) { hash = 0xCBF29CE484222325; }
static void add(const void *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001B3;
}
static void add_number(int64_t n) { add(&n, sizeof n); }
static void end(const char *name) { printf("%-28s %016llx\n", name, (unsigned long long)hash); }
static void fail(const char *what) {
  fprintf(stderr, "results: %s\n", what);
  exit(1);
}

static void sum_rows(void) {
  enum { SAMPLES = 96, ROWS = 12, STRIDE = 16 };
  begin();
  for (int round = 0; round < 200; round++) {
    static int16_t rows[ROWS][SAMPLES], columns[8 * SAMPLES], weights[8 * STRIDE];
    const int16_t *pointers[8 * STRIDE];
    int32_t counts[8];
    int16_t biases[8];
    for (int y = 0; y < ROWS; y++)
      for (int x = 0; x < SAMPLES; x++) rows[y][x] = word();
    for (int i = 0; i < 8; i++) {
      counts[i] = (int32_t)(number() % (STRIDE + 1)), biases[i] = word();
      for (int k = 0; k < STRIDE; k++) {
        pointers[i * STRIDE + k] = rows[number() % ROWS];
        weights[i * STRIDE + k] = word();
      }
    }
    cpixels_sum_rows(pointers, weights, STRIDE, counts, biases, SAMPLES, columns);
    add(columns, sizeof columns);
  }
  end("sums of rows");
}

static void store_lines(void) {
  begin();
  for (int samples = 1; samples < 70; samples++)
    for (int lines = 1; lines <= 8; lines++) {
      uint8_t columns[8 * 70], target[8 * 80];
      memset(target, 0xA5, sizeof target);
      for (size_t i = 0; i < sizeof columns; i++) columns[i] = (uint8_t)number();
      cpixels_store_lines(columns, (size_t)samples, target, 80, lines);
      add(target, sizeof target);
    }
  end("stored lines");
}

static void transform_half(void) {
  begin();
  for (int round = 0; round < 20000; round++) {
    int16_t block[16], rows[4 * 6];
    memset(rows, 0, sizeof rows);
    for (int i = 0; i < 16; i++) block[i] = word();
    cpixels_transform_half(block, rows, 6 * sizeof *rows);
    add(rows, sizeof rows);
  }
  end("half transform");
}

static void means(void) {
  begin();
  for (int round = 0; round < 200; round++) {
    uint32_t width = 1 + number() % 90, height = 1 + number() % 60, factor = 1 + number() % 9;
    int channels = 1 + (int)(number() % 4), weighted = channels % 2 == 0 && number() % 2;
    uint8_t row[4 * 90];
    cpixels_means m;
    if (!cpixels_means_start(&m, width, height, factor, channels, weighted)) fail("no memory");
    for (uint32_t y = 0; y < height; y++) {
      for (size_t i = 0; i < sizeof row; i++) row[i] = (uint8_t)number();
      cpixels_means_add(&m, row);
    }
    add(m.pixels, m.count);
    cpixels_means_finish(&m);
    free(m.pixels);
  }
  end("means");
}

static void hevc_prediction(void) {
  begin();
  for (unsigned log = 2; log <= 5; log++)
    for (unsigned mode = 0; mode < 35; mode++)
      for (int kind = 0; kind < 3; kind++)
        for (int round = 0; round < 4; round++) {
          uint8_t border[4 * 32 + 1], to[32 * 40];
          int flat = round == 3; // smooth borders are filtered strongly
          uint8_t value = (uint8_t)number();
          for (size_t i = 0; i < sizeof border; i++) border[i] = flat ? (uint8_t)(value + i / 64) : (uint8_t)number();
          memset(to, 0, sizeof to);
          cpixels_hevc_predict(border, log, mode, kind != 0, kind == 2, to, 40);
          add(to, sizeof to);
        }
  end("HEVC prediction");
}

static void hevc_residuals(void) {
  begin();
  cpixels_hevc_start();
  for (unsigned log = 2; log <= 5; log++)
    for (int kind = 0; kind < 4; kind++) {
      if (kind == CPIXELS_HEVC_SINE && log != 2) continue;
      for (int round = 0; round < 300; round++) {
        unsigned n = 1u << log, rows = 4 * (1 + number() % (n / 4)), columns = 4 * (1 + number() % (n / 4));
        if (kind == CPIXELS_HEVC_COSINE && round % 10 == 0) rows = columns = 1;
        int16_t coefficients[32 * 32] __attribute__((aligned(32)));
        uint8_t to[32 * 40];
        memset(coefficients, 0, sizeof coefficients);
        for (unsigned y = 0; y < rows; y++)
          for (unsigned x = 0; x < columns; x++)
            coefficients[y * n + x] = round % 3 ? word() : (int16_t)((int)(number() % 401) - 200);
        for (size_t i = 0; i < sizeof to; i++) to[i] = (uint8_t)number();
        cpixels_hevc_add(coefficients, log, (enum cpixels_hevc_residual)kind, rows, columns, to, 40);
        add(to, sizeof to);
        add(coefficients, n * n * sizeof *coefficients);
      }
    }
  end("HEVC residuals");
}

static void hevc_filters(void) {
  begin();
  for (int round = 0; round < 4000; round++) {
    uint8_t block[32 * 32], from[32 * 32];
    uint8_t base = (uint8_t)number();
    for (size_t i = 0; i < sizeof block; i++) block[i] = round % 2 ? (uint8_t)number() : (uint8_t)(base + number() % 8);
    int beta = (int)(number() % 65), tc = (int)(number() % 25), keeps = (int)(number() % 4);
    cpixels_hevc_deblock_luma(block + 8 * 32 + 8, 1, 32, beta, tc, keeps);
    cpixels_hevc_deblock_luma(block + 16 * 32 + 16, 32, 1, beta, tc, keeps);
    cpixels_hevc_deblock_chroma(block + 20 * 32 + 8, 1, 32, tc, keeps);
    cpixels_hevc_deblock_chroma(block + 24 * 32 + 16, 32, 1, tc, keeps);
    memcpy(from, block, sizeof from);
    int8_t offsets[4];
    for (int i = 0; i < 4; i++) offsets[i] = (int8_t)((int)(number() % 15) - 7);
    cpixels_hevc_offset_bands(block, from, 8 * 32, number() % 32, offsets);
    cpixels_hevc_offset_edges(block + 40, from + 40, 8 * 32, round % 3 == 0 ? 1 : 31 + round % 3, offsets);
    add(block, sizeof block);
  }
  end("HEVC filters");
}

// The samples.
static const char *folder;
static uint8_t *file(const char *name, size_t *count) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  uint8_t *bytes = malloc(1 << 20);
  if (!f || !bytes) fail(path);
  *count = fread(bytes, 1, 1 << 20, f);
  fclose(f);
  return bytes;
}

typedef struct {
  const uint8_t *bytes;
  size_t count;
} input;
static ptrdiff_t read_input(void *context, void *buffer, size_t count, size_t offset) {
  input *in = context;
  if (offset >= in->count) return 0;
  if (count > in->count - offset) count = in->count - offset;
  memcpy(buffer, in->bytes + offset, count);
  return (ptrdiff_t)count;
}
static int go_on(void *context) {
  (void)context;
  return 0;
}

static void jpeg(const char *name) {
  input in = {0};
  uint8_t *bytes = file(name, &in.count);
  in.bytes = bytes;
  begin();
  for (int eighths = 1; eighths <= 8; eighths *= 2)
    for (int planar = 0; planar < 2; planar++) {
      cjpeg_decoder *d = cjpeg_decoder_create(read_input, go_on, &in);
      cjpeg_header header;
      cjpeg_layout layout;
      cjpeg_decode_options options = {eighths, planar, 1 << 28, 100};
      if (!d || cjpeg_decoder_read_header(d, &header) || cjpeg_decoder_start(d, &options, &layout)) fail(name);
      uint8_t *planes[3] = {0};
      size_t strides[3] = {0};
      for (int i = 0; i < layout.plane_count; i++) {
        strides[i] = (size_t)layout.planes[i].padded_width * (size_t)layout.channels;
        planes[i] = calloc(strides[i], layout.planes[i].padded_height);
        if (!planes[i]) fail("no memory");
      }
      if (cjpeg_decoder_finish(d, planes, strides)) fail(name);
      for (int i = 0; i < layout.plane_count; i++) {
        for (uint32_t y = 0; y < layout.planes[i].height; y++)
          add(planes[i] + y * strides[i], (size_t)layout.planes[i].width * (size_t)layout.channels);
        free(planes[i]);
      }
      cjpeg_decoder_destroy(d);
    }
  end(name);
  free(bytes);
}

// A picture with gradients, edges and alpha, the same everywhere.
enum { WIDTH = 97, HEIGHT = 61 };
static uint8_t picture[WIDTH * HEIGHT * 4];
static void draw(void) {
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) {
      uint8_t *p = picture + 4 * (y * WIDTH + x);
      int inside = (x - 48) * (x - 48) + (y - 30) * (y - 30) < 500;
      p[0] = (uint8_t)(x * 2), p[1] = (uint8_t)(y * 4), p[2] = inside ? 220 : (uint8_t)(x ^ y);
      p[3] = inside ? 255 : (uint8_t)(128 + x);
    }
}

static void encoders(void) {
  begin();
  for (int i = 0; i < 4; i++) {
    cjpeg_picture p = {picture, WIDTH, HEIGHT, WIDTH * 4, CJPEG_STRAIGHT, 60 + 10 * i, i & 1, i >> 1, NULL, 0, NULL, 0};
    uint8_t *bytes = NULL;
    size_t count = 0;
    char message[200];
    if (cjpeg_encode(&p, &bytes, &count, message)) fail("cjpeg_encode");
    add(bytes, count);
    cjpeg_free(bytes);
  }
  end("JPEG encoder");
  begin();
  for (int i = 0; i < 2; i++) {
    cpng_input p = {.pixels = picture, .bytes_per_row = WIDTH * 4, .width = WIDTH, .height = HEIGHT, .channels = 4,
                    .interlaced = i};
    cpng_output out;
    if (cpng_encode(&p, &out)) fail("cpng_encode");
    add(out.bytes, out.count);
    cpng_free(out.bytes);
  }
  end("PNG encoder");
  begin();
  for (int i = 0; i < 2; i++) {
    cwebp_encoding p = {.rgba = picture, .width = WIDTH, .height = HEIGHT, .stride = WIDTH * 4, .has_alpha = 1,
                        .quality = 75, .method = 4, .lossless = i};
    size_t count = 0;
    const char *reason = NULL;
    uint8_t *bytes = cwebp_encode(&p, &count, &reason);
    if (!bytes) fail("cwebp_encode");
    add(bytes, count);
    cwebp_free(bytes);
  }
  end("WebP encoder");
}

static void webp(const char *name) {
  size_t count;
  uint8_t *bytes = file(name, &count);
  begin();
  cwebp_demuxer *d = cwebp_demuxer_create(bytes, count, 0);
  cwebp_frame frame;
  if (!d) fail(name);
  for (int i = 0; cwebp_demuxer_frame(d, i, &frame); i++)
    for (int layout = CWEBP_RGB; layout <= CWEBP_RGBA_PREMULTIPLIED; layout++) {
      int channels = layout == CWEBP_RGB ? 3 : 4;
      uint8_t *pixels = calloc((size_t)frame.width * (size_t)frame.height, (size_t)channels);
      cwebp_decoder *decoder =
          cwebp_decoder_create_rgb(frame.width, frame.height, pixels, frame.width * channels, layout, 0);
      if (!pixels || !decoder || cwebp_decoder_update(decoder, frame.data, frame.count)) fail(name);
      add(pixels, (size_t)frame.width * (size_t)frame.height * (size_t)channels);
      cwebp_decoder_destroy(decoder);
      free(pixels);
    }
  cwebp_demuxer_destroy(d);
  end(name);
  free(bytes);
}

static void avif(const char *name) {
  size_t count;
  uint8_t *bytes = file(name, &count);
  begin();
  if (cavif_missing()) fail(cavif_missing());
  cavif_decoder *d = cavif_decoder_create(bytes, count, 1 << 28, 1 << 14, 1);
  cavif_frame f;
  if (!d || cavif_decoder_open(d) || cavif_decoder_read(d, 0, &f)) fail(name);
  const void *planes[3] = {f.y, f.u, f.v};
  size_t strides[3] = {f.y_stride, f.u_stride, f.v_stride};
  for (int i = 0; i < (f.layout == CAVIF_GRAY ? 1 : 3); i++) {
    int width = i && f.layout != CAVIF_444 ? (f.width + 1) / 2 : f.width;
    int height = i && f.layout == CAVIF_420 ? (f.height + 1) / 2 : f.height;
    for (int y = 0; y < height; y++)
      add((const uint8_t *)planes[i] + (size_t)y * strides[i], (size_t)width * (f.depth > 8 ? 2 : 1));
  }
  cavif_decoder_destroy(d);
  end(name);
  free(bytes);
}

// A TIFF file (TIFF 6.0) of one strip without compression: CIELab with 8 bits, or RGB with `bits`, which libvips does not
// read.
static void tiff(const char *name, int bits, int photometric) {
  enum { SIDE = 64, ENTRIES = 10 };
  static uint8_t bytes[8 + 2 + ENTRIES * 12 + 4 + 6 + SIDE * SIDE * 3] = {'I', 'I', 42, 0, 8, 0, 0, 0, ENTRIES};
  enum { WORDS = 8 + 2 + ENTRIES * 12 + 4, DATA = WORDS + 6 };
  uint32_t strip = (uint32_t)(SIDE * SIDE * 3 * bits / 8);
  // Tag, type (3: 16 bits, 4: 32 bits), count and value.
  const uint32_t entries[ENTRIES][4] = {
      {256, 4, 1, SIDE}, {257, 4, 1, SIDE}, {258, 3, 3, WORDS}, {259, 3, 1, 1}, {262, 3, 1, (uint32_t)photometric},
      {273, 4, 1, DATA}, {277, 3, 1, 3}, {278, 4, 1, SIDE}, {279, 4, 1, strip}, {284, 3, 1, 1}};
  for (int i = 0; i < ENTRIES; i++) {
    uint8_t *to = bytes + 10 + 12 * i;
    uint16_t halves[2] = {(uint16_t)entries[i][0], (uint16_t)entries[i][1]};
    memcpy(to, halves, 4), memcpy(to + 4, entries[i] + 2, 8);
  }
  uint16_t depths[3] = {(uint16_t)bits, (uint16_t)bits, (uint16_t)bits};
  memcpy(bytes + WORDS, depths, sizeof depths);
  for (uint32_t i = 0; i < strip; i++) bytes[DATA + i] = (uint8_t)number();
  ctiff_picture p = {0};
  ctiff_request request = {.max_pixels = 1 << 28, .max_side = 1 << 20, .max_memory = 1 << 28};
  char error[200] = "";
  begin();
  if (ctiff_decode(bytes, DATA + strip, &request, &p, error, sizeof error)) fail(name);
  add(p.pixels, p.count);
  ctiff_free(p.pixels);
  end(name);
}

static void jp2(const char *name) {
  size_t count;
  uint8_t *bytes = file(name, &count);
  cjp2_picture p = {0};
  cjp2_request request = {.max_pixels = 1 << 28, .max_memory = 1 << 28};
  char error[200] = "";
  begin();
  if (cjp2_decode(bytes, count, &request, &p, error, sizeof error)) fail(name);
  add(p.pixels, p.count);
  cjp2_free(p.pixels);
  end(name);
  free(bytes);
}

// libjxl computes with floating-point numbers in an order that depends on the width of the processor's vectors. The first
// run writes its samples to this file; others may differ from them by one.
static const char *reference;
static void compare(const uint8_t *samples, size_t count, const char *name) {
  FILE *f = fopen(reference, "rb");
  if (!f) {
    f = fopen(reference, "wb");
    if (!f || fwrite(samples, 1, count, f) != count || fclose(f)) fail(reference);
    return;
  }
  uint8_t *others = malloc(count + 1);
  if (!others || fread(others, 1, count + 1, f) != count) fail(reference);
  for (size_t i = 0; i < count; i++)
    if (abs(samples[i] - others[i]) > 1) fail(name);
  fclose(f);
  free(others);
}

static void jxl(const char *name) {
  size_t count;
  uint8_t *bytes = file(name, &count);
  cjxl_picture p = {0};
  cjxl_request request = {.max_pixels = 1 << 28, .max_side = 1 << 20, .max_profile = 1 << 20};
  begin();
  if (cjxl_decode(bytes, count, &request, &p) || p.is_deep) fail(name);
  compare(p.pixels, p.count, name);
  add_number(p.width), add_number(p.height), add_number(p.channels);
  cjxl_free(p.pixels);
  cjxl_free(p.profile);
  end(name);
  free(bytes);
  // Lossless: what comes out is what went in.
  uint8_t *encoded = NULL;
  size_t size = 0;
  if (cjxl_encode(picture, WIDTH, HEIGHT, true, 100, &encoded, &size)) fail("cjxl_encode");
  cjxl_picture again = {0};
  if (cjxl_decode(encoded, size, &request, &again)) fail("cjxl_decode");
  if (again.count != sizeof picture || memcmp(again.pixels, picture, sizeof picture)) fail("JPEG XL is not lossless");
  cjxl_free(again.pixels), cjxl_free(again.profile), cjxl_free(encoded);
}

static void database(void) {
  char path[] = "/tmp/results-XXXXXX";
  int descriptor = mkstemp(path);
  if (descriptor < 0) fail("mkstemp");
  const char *layer = csqlite_layer_name(csqlite_plain_layer);
  sqlite3 *connection = NULL;
  sqlite3_stmt *statement = NULL;
  begin();
  if (sqlite3_open_v2(path, &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, layer)) fail("sqlite3_open_v2");
  csqlite_harden(connection);
  if (sqlite3_exec(connection, "PRAGMA journal_mode = WAL; CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)", 0, 0, 0))
    fail("CREATE");
  if (csqlite_check_index(connection) != csqlite_files_intact) fail("csqlite_check_index");
  if (csqlite_check_log(connection) != csqlite_files_intact) fail("csqlite_check_log");
  if (sqlite3_prepare_v2(connection, "INSERT INTO t VALUES (?1, ?2)", -1, &statement, 0)) fail("INSERT");
  for (int i = 0; i < 100; i++) {
    sqlite3_bind_int(statement, 1, i);
    csqlite_bind_blob_copy(statement, 2, picture + i * 37, 200);
    if (sqlite3_step(statement) != SQLITE_DONE) fail("INSERT");
    sqlite3_reset(statement);
  }
  sqlite3_finalize(statement);
  if (csqlite_check_log(connection) != csqlite_files_intact) fail("csqlite_check_log after changes");
  sqlite3_close(connection);
  // The file itself, which can be moved from one processor to the other: without the library's own version in it.
  uint8_t page[4096];
  if (pread(descriptor, page, 92, 0) != 92) fail("pread");
  add(page, 92);
  for (off_t at = 4096; pread(descriptor, page, sizeof page, at) == sizeof page; at += 4096) add(page, sizeof page);
  close(descriptor);
  unlink(path);
  end("database");
}

static void file_system(void) {
  char path[] = "/tmp/results-XXXXXX", other[64];
  int descriptor = mkstemp(path);
  if (descriptor < 0 || write(descriptor, picture, sizeof picture) != sizeof picture) fail("mkstemp");
  snprintf(other, sizeof other, "%s.new", path);
  begin();
  add_number(cfilesystem_rename_exclusive(path, other));
  add_number(access(path, F_OK));
  add_number(cfilesystem_rename_exclusive(path, other) != 0);
  add_number(cfilesystem_synchronize_all(descriptor));
  close(descriptor);
  unlink(other);
  end("file system");
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  folder = arguments[1], reference = arguments[2];
  draw();
  sum_rows(), store_lines(), transform_half(), means();
  hevc_prediction(), hevc_residuals(), hevc_filters();
  jpeg("lake.jpg"), jpeg("lake-progressive.jpg"), jpeg("lake-grey.jpg"), jpeg("lake-cmyk.jpg");
  encoders();
  webp("lake.webp"), webp("leaf.webp"), webp("moon.webp");
  avif("lake.avif");
  tiff("TIFF in CIELab", 8, 8), tiff("TIFF with 5 bits", 5, 2);
  jp2("lake.jp2");
  jxl("lake.jxl");
  database(), file_system();
  return 0;
}

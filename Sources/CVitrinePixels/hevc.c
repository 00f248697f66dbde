#include "cpixels.h"
#include <string.h>

// Prediction and transforms of HEVC (ITU-T H.265 §8.4.4.2, §8.6.4.2), for samples of 8 bits.

static inline uint8_t clip(int v) { return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v; }

// The first sixteen columns of the matrix of 32 points (equation 8-301); the others follow by symmetry.
static const int8_t first_half[32][16] = {
    {64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64},
    {90, 90, 88, 85, 82, 78, 73, 67, 61, 54, 46, 38, 31, 22, 13, 4},
    {90, 87, 80, 70, 57, 43, 25, 9, -9, -25, -43, -57, -70, -80, -87, -90},
    {90, 82, 67, 46, 22, -4, -31, -54, -73, -85, -90, -88, -78, -61, -38, -13},
    {89, 75, 50, 18, -18, -50, -75, -89, -89, -75, -50, -18, 18, 50, 75, 89},
    {88, 67, 31, -13, -54, -82, -90, -78, -46, -4, 38, 73, 90, 85, 61, 22},
    {87, 57, 9, -43, -80, -90, -70, -25, 25, 70, 90, 80, 43, -9, -57, -87},
    {85, 46, -13, -67, -90, -73, -22, 38, 82, 88, 54, -4, -61, -90, -78, -31},
    {83, 36, -36, -83, -83, -36, 36, 83, 83, 36, -36, -83, -83, -36, 36, 83},
    {82, 22, -54, -90, -61, 13, 78, 85, 31, -46, -90, -67, 4, 73, 88, 38},
    {80, 9, -70, -87, -25, 57, 90, 43, -43, -90, -57, 25, 87, 70, -9, -80},
    {78, -4, -82, -73, 13, 85, 67, -22, -88, -61, 31, 90, 54, -38, -90, -46},
    {75, -18, -89, -50, 50, 89, 18, -75, -75, 18, 89, 50, -50, -89, -18, 75},
    {73, -31, -90, -22, 78, 67, -38, -90, -13, 82, 61, -46, -88, -4, 85, 54},
    {70, -43, -87, 9, 90, 25, -80, -57, 57, 80, -25, -90, -9, 87, 43, -70},
    {67, -54, -78, 38, 85, -22, -90, 4, 90, 13, -88, -31, 82, 46, -73, -61},
    {64, -64, -64, 64, 64, -64, -64, 64, 64, -64, -64, 64, 64, -64, -64, 64},
    {61, -73, -46, 82, 31, -88, -13, 90, -4, -90, 22, 85, -38, -78, 54, 67},
    {57, -80, -25, 90, -9, -87, 43, 70, -70, -43, 87, 9, -90, 25, 80, -57},
    {54, -85, -4, 88, -46, -61, 82, 13, -90, 38, 67, -78, -22, 90, -31, -73},
    {50, -89, 18, 75, -75, -18, 89, -50, -50, 89, -18, -75, 75, 18, -89, 50},
    {46, -90, 38, 54, -90, 31, 61, -88, 22, 67, -85, 13, 73, -82, 4, 78},
    {43, -90, 57, 25, -87, 70, 9, -80, 80, -9, -70, 87, -25, -57, 90, -43},
    {38, -88, 73, -4, -67, 90, -46, -31, 85, -78, 13, 61, -90, 54, 22, -82},
    {36, -83, 83, -36, -36, 83, -83, 36, 36, -83, 83, -36, -36, 83, -83, 36},
    {31, -78, 90, -61, 4, 54, -88, 82, -38, -22, 73, -90, 67, -13, -46, 85},
    {25, -70, 90, -80, 43, 9, -57, 87, -87, 57, -9, -43, 80, -90, 70, -25},
    {22, -61, 85, -90, 73, -38, -4, 46, -78, 90, -82, 54, -13, -31, 67, -88},
    {18, -50, 75, -89, 89, -75, 50, -18, -18, 50, -75, 89, -89, 75, -50, 18},
    {13, -38, 61, -78, 88, -90, 85, -73, 54, -31, 4, 22, -46, 67, -82, 90},
    {9, -25, 43, -57, 70, -80, 87, -90, 90, -87, 80, -70, 57, -43, 25, -9},
    {4, -13, 22, -31, 38, -46, 54, -61, 67, -73, 78, -82, 85, -88, 90, -90},
};
static const int8_t sine[4][4] = {{29, 55, 74, 84}, {74, 74, 0, -74}, {84, -29, -74, 55}, {55, -84, 74, -29}};

// The matrices of 4 (DCT and sine), 8, 16 and 32 points by pairs of rows: [row / 2][column][row & 1].
static int16_t sine_pairs[2 * 4 * 2] __attribute__((aligned(32)));
static int16_t pairs4[2 * 4 * 2] __attribute__((aligned(32)));
static int16_t pairs8[4 * 8 * 2] __attribute__((aligned(32)));
static int16_t pairs16[8 * 16 * 2] __attribute__((aligned(32)));
static int16_t pairs32[16 * 32 * 2] __attribute__((aligned(32)));

static int coefficient(int n, int row, int column) {
  int step = 32 / n;
  int at = column < n / 2 ? column : n - 1 - column;
  // The columns of the smaller matrices are the first ones of their rows in the large one.
  int value = first_half[row * step][at];
  return column < n / 2 || row % 2 == 0 ? value : -value;
}

static void fill(int16_t *pairs, int n) {
  for (int row = 0; row < n; row++)
    for (int column = 0; column < n; column++)
      pairs[(row / 2 * n + column) * 2 + row % 2] = (int16_t)coefficient(n, row, column);
}

void cpixels_hevc_start(void) {
  fill(pairs4, 4), fill(pairs8, 8), fill(pairs16, 16), fill(pairs32, 32);
  for (int row = 0; row < 4; row++)
    for (int column = 0; column < 4; column++)
      sine_pairs[(row / 2 * 4 + column) * 2 + row % 2] = sine[row][column];
}

#if defined(__x86_64__)
#include <immintrin.h>

// Both passes, in steps of four samples. Columns of `coefficients` from `columns` on are zeros, as are rows from `rows`
// on; both are rounded up to pairs.
static inline void transform(const int16_t *coefficients, int n, int rows, int columns, const int16_t *pairs,
                             uint8_t *to, size_t stride) {
  int16_t middle[32 * 32] __attribute__((aligned(32)));
  const __m128i half = _mm_set1_epi32(64), late_half = _mm_set1_epi32(2048);
  int row_pairs = (rows + 1) / 2, column_pairs = (columns + 1) / 2;
  for (int c = 0; c < columns; c += 4) {
    __m128i in[16];
    for (int p = 0; p < row_pairs; p++) {
      __m128i a = _mm_loadl_epi64((const __m128i *)(coefficients + 2 * p * n + c));
      __m128i b = _mm_loadl_epi64((const __m128i *)(coefficients + (2 * p + 1) * n + c));
      in[p] = _mm_unpacklo_epi16(a, b);
    }
    for (int k = 0; k < n; k++) {
      __m128i sum = half;
      for (int p = 0; p < row_pairs; p++) {
        int32_t weight;
        memcpy(&weight, pairs + (p * n + k) * 2, 4);
        sum = _mm_add_epi32(sum, _mm_madd_epi16(in[p], _mm_set1_epi32(weight)));
      }
      sum = _mm_srai_epi32(sum, 7);
      _mm_storel_epi64((__m128i *)(middle + k * n + c), _mm_packs_epi32(sum, sum));
    }
  }
  for (int y = 0; y < n; y++) {
    const int16_t *row = middle + y * n;
    for (int x = 0; x < n; x += 4) {
      __m128i sum = late_half;
      for (int p = 0; p < column_pairs; p++) {
        int32_t pair;
        memcpy(&pair, row + 2 * p, 4);
        __m128i weights = _mm_load_si128((const __m128i *)(pairs + (p * n + x) * 2));
        sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_set1_epi32(pair), weights));
      }
      sum = _mm_srai_epi32(sum, 12);
      __m128i residual = _mm_packs_epi32(sum, sum);
      int32_t before;
      memcpy(&before, to + y * stride + x, 4);
      __m128i sample = _mm_unpacklo_epi8(_mm_cvtsi32_si128(before), _mm_setzero_si128());
      sample = _mm_adds_epi16(sample, residual);
      before = _mm_cvtsi128_si32(_mm_packus_epi16(sample, sample));
      memcpy(to + y * stride + x, &before, 4);
    }
  }
}

__attribute__((target("avx2"), always_inline)) static inline void
transform_wide(const int16_t *coefficients, int n, int rows, int columns, const int16_t *pairs, uint8_t *to,
               size_t stride) {
  int16_t middle[32 * 32] __attribute__((aligned(32)));
  const __m256i half = _mm256_set1_epi32(64), late_half = _mm256_set1_epi32(2048);
  int row_pairs = (rows + 1) / 2, column_pairs = (columns + 1) / 2;
  for (int c = 0; c < columns; c += 8) {
    __m256i in[16];
    for (int p = 0; p < row_pairs; p++) {
      __m128i a = _mm_loadu_si128((const __m128i *)(coefficients + 2 * p * n + c));
      __m128i b = _mm_loadu_si128((const __m128i *)(coefficients + (2 * p + 1) * n + c));
      in[p] = _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b));
    }
    for (int k = 0; k < n; k++) {
      __m256i sum = half;
      for (int p = 0; p < row_pairs; p++) {
        int32_t weight;
        memcpy(&weight, pairs + (p * n + k) * 2, 4);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(in[p], _mm256_set1_epi32(weight)));
      }
      sum = _mm256_srai_epi32(sum, 7);
      __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(sum, sum), 0x08);
      _mm_storeu_si128((__m128i *)(middle + k * n + c), _mm256_castsi256_si128(packed));
    }
  }
  for (int y = 0; y < n; y++) {
    const int16_t *row = middle + y * n;
    for (int x = 0; x < n; x += 8) {
      __m256i sum = late_half;
      for (int p = 0; p < column_pairs; p++) {
        int32_t pair;
        memcpy(&pair, row + 2 * p, 4);
        __m256i weights = _mm256_load_si256((const __m256i *)(pairs + (p * n + x) * 2));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_set1_epi32(pair), weights));
      }
      sum = _mm256_srai_epi32(sum, 12);
      __m128i residual = _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packs_epi32(sum, sum), 0x08));
      __m128i sample = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(to + y * stride + x)));
      sample = _mm_adds_epi16(sample, residual);
      _mm_storel_epi64((__m128i *)(to + y * stride + x), _mm_packus_epi16(sample, sample));
    }
  }
}

__attribute__((target("avx2"))) static void transform_wide_any(const int16_t *coefficients, int n, int rows,
                                                               int columns, const int16_t *pairs, uint8_t *to,
                                                               size_t stride) {
  if (n == 8) transform_wide(coefficients, 8, rows, columns, pairs, to, stride);
  else if (n == 16) transform_wide(coefficients, 16, rows, columns, pairs, to, stride);
  else transform_wide(coefficients, 32, rows, columns, pairs, to, stride);
}
#else

static inline int16_t narrow(int v) { return v < -32768 ? -32768 : v > 32767 ? 32767 : (int16_t)v; }

static void transform_plain(const int16_t *coefficients, int n, int rows, int columns, const int16_t *pairs,
                            uint8_t *to, size_t stride) {
  int16_t middle[32 * 32];
  for (int k = 0; k < n; k++) {
    int sums[32];
    for (int c = 0; c < columns; c++) sums[c] = 64;
    for (int j = 0; j < rows; j++) {
      int weight = pairs[(j / 2 * n + k) * 2 + j % 2];
      for (int c = 0; c < columns; c++) sums[c] += weight * coefficients[j * n + c];
    }
    for (int c = 0; c < columns; c++) middle[k * n + c] = narrow(sums[c] >> 7);
  }
  for (int y = 0; y < n; y++) {
    int sums[32];
    for (int x = 0; x < n; x++) sums[x] = 2048;
    for (int c = 0; c < columns; c++) {
      int value = middle[y * n + c];
      for (int x = 0; x < n; x++) sums[x] += value * pairs[(c / 2 * n + x) * 2 + c % 2];
    }
    for (int x = 0; x < n; x++) to[y * stride + x] = clip(to[y * stride + x] + (sums[x] >> 12));
  }
}
#endif

void cpixels_hevc_add(int16_t *coefficients, unsigned log_side, enum cpixels_hevc_residual kind, unsigned rows,
                      unsigned columns, uint8_t *to, size_t stride) {
  int n = 1 << log_side;
  if (kind == CPIXELS_HEVC_BYPASS || kind == CPIXELS_HEVC_SKIP) {
    // Of a block without a transform, each sample has a difference of its own (8-296, 8-299).
    for (int y = 0; y < n; y++)
      for (int x = 0; x < n; x++) {
        int v = coefficients[y * n + x];
        if (kind == CPIXELS_HEVC_SKIP) v = (v * (1 << (5 + log_side)) + 2048) >> 12;
        to[y * stride + x] = clip(to[y * stride + x] + v);
      }
  } else if (kind == CPIXELS_HEVC_COSINE && rows == 1 && columns == 1) {
    int v = (((64 * coefficients[0] + 64) >> 7) * 64 + 2048) >> 12;
    for (int y = 0; y < n; y++)
      for (int x = 0; x < n; x++) to[y * stride + x] = clip(to[y * stride + x] + v);
    coefficients[0] = 0;
    return;
  } else {
    const int16_t *pairs = kind == CPIXELS_HEVC_SINE ? sine_pairs
                           : n == 4                  ? pairs4
                           : n == 8                  ? pairs8
                           : n == 16                 ? pairs16
                                                     : pairs32;
#if defined(__x86_64__)
    if (n > 4 && __builtin_cpu_supports("avx2"))
      transform_wide_any(coefficients, n, (int)rows, (int)columns, pairs, to, stride);
    // The compiler unrolls the loops for the side that most blocks have.
    else if (n == 4) transform(coefficients, 4, (int)rows, (int)columns, pairs, to, stride);
    else transform(coefficients, n, (int)rows, (int)columns, pairs, to, stride);
#else
    transform_plain(coefficients, n, (int)rows, (int)columns, pairs, to, stride);
#endif
  }
  memset(coefficients, 0, (size_t)n * (rows < 4 ? 4 : rows) * sizeof *coefficients);
}

static const int8_t angles[35] = {0,  0,  32,  26,  21,  17,  13,  9,   5,   2,   0,   -2, -5, -9, -13, -17, -21, -26,
                                  -32, -26, -21, -17, -13, -9, -5, -2, 0,  2,  5,  9,  13, 17, 21, 26,  32};
static const int16_t inverse_angles[15] = {-4096, -1638, -910, -630, -482, -390, -315, -256,
                                           -315,  -390,  -482, -630, -910, -1638, -4096};

// A square of bytes with rows and columns exchanged.
static inline void store_transposed(const uint8_t *from, int n, uint8_t *to, size_t stride) {
#if defined(__x86_64__)
  if (n >= 8) {
    for (int y = 0; y < n; y += 8)
      for (int x = 0; x < n; x += 8) {
        __m128i a[8], b[4], c[4];
        for (int i = 0; i < 8; i++) a[i] = _mm_loadl_epi64((const __m128i *)(from + (y + i) * n + x));
        for (int i = 0; i < 4; i++) b[i] = _mm_unpacklo_epi8(a[2 * i], a[2 * i + 1]);
        c[0] = _mm_unpacklo_epi16(b[0], b[1]), c[1] = _mm_unpackhi_epi16(b[0], b[1]);
        c[2] = _mm_unpacklo_epi16(b[2], b[3]), c[3] = _mm_unpackhi_epi16(b[2], b[3]);
        for (int i = 0; i < 2; i++) {
          __m128i low = _mm_unpacklo_epi32(c[i], c[i + 2]), high = _mm_unpackhi_epi32(c[i], c[i + 2]);
          uint8_t *line = to + (x + 4 * i) * stride + y;
          _mm_storel_epi64((__m128i *)line, low);
          _mm_storel_epi64((__m128i *)(line + stride), _mm_unpackhi_epi64(low, low));
          _mm_storel_epi64((__m128i *)(line + 2 * stride), high);
          _mm_storel_epi64((__m128i *)(line + 3 * stride), _mm_unpackhi_epi64(high, high));
        }
      }
    return;
  }
#endif
  for (int y = 0; y < n; y++)
    for (int x = 0; x < n; x++) to[x * stride + y] = from[y * n + x];
}

static inline void planar(const uint8_t *left, const uint8_t *top, int n, int log, uint8_t *to, size_t stride) {
  int corner = top[n], below = left[-n];
  for (int y = 0; y < n; y++) {
    int side = left[-y];
    for (int x = 0; x < n; x++) {
      int sum = (n - 1 - x) * side + (x + 1) * corner + (n - 1 - y) * top[x] + (y + 1) * below;
      to[y * stride + x] = (uint8_t)((sum + n) >> (log + 1));
    }
  }
}

// `left[-y]` and `top[x]` are the samples beside the block, `left[1]` and `top[-1]` the one at its corner.
static inline void angular(const uint8_t *left, const uint8_t *top, int n, unsigned mode, int has_edge, uint8_t *to,
                           size_t stride) {
  uint8_t memory[32 + 64 + 1 + 32], turned[32 * 32];
  uint8_t *line = memory + 32;
  int angle = angles[mode], is_vertical = mode >= 18;
  line[0] = top[-1];
  int behind = angle < 0 ? n : 2 * n;
  if (is_vertical) memcpy(line + 1, top, (size_t)behind);
  else
    for (int i = 0; i < behind; i++) line[1 + i] = left[-i];
  // With one sample in front of the corner, no prediction reads it, and there is none to project.
  int front = (n * angle) >> 5;
  if (front < -1) {
    int inverse = inverse_angles[mode - 11];
    for (int x = front; x < 0; x++) {
      int at = ((x * inverse + 128) >> 8) - 1;
      line[x] = is_vertical ? left[-at] : top[at];
    }
  }
  uint8_t *target = is_vertical ? to : turned;
  size_t step = is_vertical ? stride : (size_t)n;
  for (int y = 0; y < n; y++) {
    const uint8_t *from = line + 1 + (((y + 1) * angle) >> 5);
    int weight = ((y + 1) * angle) & 31;
    uint8_t *row = target + y * step;
    if (weight)
      for (int x = 0; x < n; x++) row[x] = (uint8_t)(((32 - weight) * from[x] + weight * from[x + 1] + 16) >> 5);
    else memcpy(row, from, (size_t)n);
  }
  if (angle == 0 && has_edge) {
    int corner = top[-1];
    for (int y = 0; y < n; y++) target[y * step] = clip(line[1] + (((is_vertical ? left[-y] : top[y]) - corner) >> 1));
  }
  if (!is_vertical) store_transposed(turned, n, to, stride);
}

static inline void mean(const uint8_t *left, const uint8_t *top, int n, int log, int has_edge, uint8_t *to,
                        size_t stride) {
  int sum = n;
  for (int i = 0; i < n; i++) sum += left[-i] + top[i];
  int value = sum >> (log + 1);
  for (int y = 0; y < n; y++) memset(to + y * stride, value, (size_t)n);
  if (!has_edge) return;
  to[0] = (uint8_t)((left[0] + 2 * value + top[0] + 2) >> 2);
  for (int i = 1; i < n; i++) {
    to[i] = (uint8_t)((top[i] + 3 * value + 2) >> 2);
    to[i * stride] = (uint8_t)((left[-i] + 3 * value + 2) >> 2);
  }
}

static inline int distance(int a, int b) { return a > b ? a - b : b - a; }

static inline void predict(const uint8_t *border, int log, unsigned mode, int is_luma, int is_strong, uint8_t *to,
                           size_t stride) {
  int n = 1 << log;
  uint8_t smooth[4 * 32 + 1];
  if (is_luma && n > 4 && mode != 1) {
    int off = distance((int)mode, 26) < distance((int)mode, 10) ? distance((int)mode, 26) : distance((int)mode, 10);
    if (mode == 0 || off > (n == 8 ? 7 : n == 16 ? 1 : 0)) {
      int a = border[0], b = border[2 * n], c = border[4 * n];
      smooth[0] = border[0], smooth[4 * n] = border[4 * n];
      if (is_strong && n == 32 && distance(a + b, 2 * border[n]) < 8 && distance(b + c, 2 * border[3 * n]) < 8) {
        for (int i = 1; i < 64; i++) {
          smooth[i] = (uint8_t)(((64 - i) * a + i * b + 32) >> 6);
          smooth[64 + i] = (uint8_t)(((64 - i) * b + i * c + 32) >> 6);
        }
        smooth[64] = border[64];
      } else {
        for (int i = 1; i < 4 * n; i++) smooth[i] = (uint8_t)((border[i - 1] + 2 * border[i] + border[i + 1] + 2) >> 2);
      }
      border = smooth;
    }
  }
  const uint8_t *left = border + 2 * n - 1, *top = border + 2 * n + 1;
  int has_edge = is_luma && n < 32;
  if (mode == 0) planar(left, top, n, log, to, stride);
  else if (mode == 1) mean(left, top, n, log, has_edge, to, stride);
  else angular(left, top, n, mode, has_edge, to, stride);
}

void cpixels_hevc_predict(const uint8_t *border, unsigned log_side, unsigned mode, int is_luma, int is_strong,
                          uint8_t *to, size_t stride) {
  switch (log_side) {
  case 2: return predict(border, 2, mode, is_luma, 0, to, stride);
  case 3: return predict(border, 3, mode, is_luma, 0, to, stride);
  case 4: return predict(border, 4, mode, is_luma, 0, to, stride);
  default: return predict(border, 5, mode, is_luma, is_strong, to, stride);
  }
}

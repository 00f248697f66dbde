#include "cpixels.h"
#include <string.h>

// Samples of a row that are summed before they are transposed: few enough for registers and the first cache.
#define STEP 32

// Half the cosines of a transform of four points, in 1/8192.
#define FIRST 2896
#define SECOND 3784
#define SECOND_INNER 1567
#define THIRD 2896
#define FOURTH 1567
#define FOURTH_INNER 3784
// Two weights as the halves of a word.
#define PAIR(low, high) (int32_t)((uint32_t)(uint16_t)(low) | (uint32_t)(uint16_t)(high) << 16)

#if defined(__x86_64__)
#include <immintrin.h>

// Eight vectors of eight samples, from lines to columns.
static inline void transpose(const int16_t *from, int16_t *to) {
  __m128i a[8], b[8];
  for (int i = 0; i < 8; i++) a[i] = _mm_load_si128((const __m128i *)(from + i * STEP));
  for (int i = 0; i < 4; i++) {
    b[2 * i] = _mm_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    a[4 * i] = _mm_unpacklo_epi32(b[4 * i], b[4 * i + 2]);
    a[4 * i + 1] = _mm_unpackhi_epi32(b[4 * i], b[4 * i + 2]);
    a[4 * i + 2] = _mm_unpacklo_epi32(b[4 * i + 1], b[4 * i + 3]);
    a[4 * i + 3] = _mm_unpackhi_epi32(b[4 * i + 1], b[4 * i + 3]);
  }
  for (int i = 0; i < 4; i++) {
    _mm_storeu_si128((__m128i *)(to + 16 * i), _mm_unpacklo_epi64(a[i], a[i + 4]));
    _mm_storeu_si128((__m128i *)(to + 16 * i + 8), _mm_unpackhi_epi64(a[i], a[i + 4]));
  }
}

__attribute__((target("avx2"))) static void sum_wide(const int16_t *const *rows, const int16_t *weights, int count,
                                                     int16_t bias, size_t x, int16_t *line) {
  __m256i a = _mm256_set1_epi16(bias), b = a;
  for (int k = 0; k < count; k++) {
    const __m256i *row = (const __m256i *)(rows[k] + x);
    __m256i weight = _mm256_set1_epi16(weights[k]);
    a = _mm256_add_epi16(a, _mm256_mulhi_epi16(_mm256_loadu_si256(row), weight));
    b = _mm256_add_epi16(b, _mm256_mulhi_epi16(_mm256_loadu_si256(row + 1), weight));
  }
  _mm256_store_si256((__m256i *)line, a);
  _mm256_store_si256((__m256i *)line + 1, b);
}

static void sum(const int16_t *const *rows, const int16_t *weights, int count, int16_t bias, size_t x, int16_t *line) {
  __m128i a = _mm_set1_epi16(bias), b = a, c = a, d = a;
  for (int k = 0; k < count; k++) {
    const __m128i *row = (const __m128i *)(rows[k] + x);
    __m128i weight = _mm_set1_epi16(weights[k]);
    a = _mm_add_epi16(a, _mm_mulhi_epi16(_mm_loadu_si128(row), weight));
    b = _mm_add_epi16(b, _mm_mulhi_epi16(_mm_loadu_si128(row + 1), weight));
    c = _mm_add_epi16(c, _mm_mulhi_epi16(_mm_loadu_si128(row + 2), weight));
    d = _mm_add_epi16(d, _mm_mulhi_epi16(_mm_loadu_si128(row + 3), weight));
  }
  __m128i *to = (__m128i *)line;
  _mm_store_si128(to, a), _mm_store_si128(to + 1, b), _mm_store_si128(to + 2, c), _mm_store_si128(to + 3, d);
}

void cpixels_sum_rows(const int16_t *const *rows, const int16_t *weights, size_t stride, const int32_t counts[8],
                      const int16_t biases[8], size_t samples, int16_t *columns) {
  _Alignas(32) int16_t lines[8 * STEP];
  int is_wide = __builtin_cpu_supports("avx2");
  for (size_t x = 0; x < samples; x += STEP) {
    for (size_t i = 0; i < 8; i++) {
      if (is_wide) sum_wide(rows + i * stride, weights + i * stride, counts[i], biases[i], x, lines + i * STEP);
      else sum(rows + i * stride, weights + i * stride, counts[i], biases[i], x, lines + i * STEP);
    }
    for (size_t i = 0; i < STEP; i += 8) transpose(lines + i, columns + 8 * (x + i));
  }
}

static size_t store_eights(const uint8_t *columns, size_t samples, uint8_t *target, size_t bytes_per_line, int lines) {
  size_t x = 0;
  for (; x + 8 <= samples; x += 8) {
    const __m128i *from = (const __m128i *)(columns + 8 * x);
    __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    // Samples 0 and 1 of all lines are in a, 2 and 3 in b, and so on.
    __m128i ab = _mm_unpacklo_epi8(a, b), ab2 = _mm_unpackhi_epi8(a, b);
    __m128i cd = _mm_unpacklo_epi8(c, d), cd2 = _mm_unpackhi_epi8(c, d);
    __m128i low = _mm_unpacklo_epi8(ab, ab2), high = _mm_unpackhi_epi8(ab, ab2);
    __m128i low2 = _mm_unpacklo_epi8(cd, cd2), high2 = _mm_unpackhi_epi8(cd, cd2);
    __m128i pairs[4] = {_mm_unpacklo_epi32(low, low2), _mm_unpackhi_epi32(low, low2), _mm_unpacklo_epi32(high, high2),
                        _mm_unpackhi_epi32(high, high2)};
    uint8_t bytes[64];
    memcpy(bytes, pairs, sizeof bytes);
    for (int i = 0; i < lines; i++) memcpy(target + (size_t)i * bytes_per_line + x, bytes + 8 * i, 8);
  }
  return x;
}

// Four lines by four coefficients of each: sums in 1/8192, shifted right and rounded.
static inline void transform_lines(__m128i even, __m128i odd, int shift, __m128i *upper, __m128i *lower) {
  __m128i round = _mm_set1_epi32(1 << (shift - 1)), count = _mm_cvtsi32_si128(shift);
  __m128i sum = _mm_add_epi32(round, _mm_madd_epi16(even, _mm_set1_epi32(PAIR(FIRST, THIRD))));
  __m128i rest = _mm_add_epi32(round, _mm_madd_epi16(even, _mm_set1_epi32(PAIR(FIRST, -THIRD))));
  __m128i outer = _mm_madd_epi16(odd, _mm_set1_epi32(PAIR(SECOND, FOURTH)));
  __m128i inner = _mm_madd_epi16(odd, _mm_set1_epi32(PAIR(SECOND_INNER, -FOURTH_INNER)));
  *upper = _mm_packs_epi32(_mm_sra_epi32(_mm_add_epi32(sum, outer), count),
                           _mm_sra_epi32(_mm_add_epi32(rest, inner), count));
  *lower = _mm_packs_epi32(_mm_sra_epi32(_mm_sub_epi32(rest, inner), count),
                           _mm_sra_epi32(_mm_sub_epi32(sum, outer), count));
}

void cpixels_transform_half(const int16_t block[16], void *rows, ptrdiff_t bytes_per_row) {
  __m128i a = _mm_loadu_si128((const __m128i *)block), b = _mm_loadu_si128((const __m128i *)block + 1);
  __m128i upper, lower;
  transform_lines(_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b), 9, &upper, &lower);
  // From columns 0 and 1, 2 and 3 to pairs of rows 0 and 2, 1 and 3.
  __m128i one = _mm_unpacklo_epi16(upper, _mm_srli_si128(upper, 8));
  __m128i two = _mm_unpacklo_epi16(lower, _mm_srli_si128(lower, 8));
  __m128i top = _mm_unpacklo_epi32(one, two), bottom = _mm_unpackhi_epi32(one, two);
  transform_lines(_mm_unpacklo_epi16(top, bottom), _mm_unpackhi_epi16(top, bottom), 9, &upper, &lower);
  char *row = rows;
  _mm_storel_epi64((__m128i *)row, upper);
  _mm_storel_epi64((__m128i *)(row + bytes_per_row), _mm_srli_si128(upper, 8));
  _mm_storel_epi64((__m128i *)(row + 2 * bytes_per_row), lower);
  _mm_storel_epi64((__m128i *)(row + 3 * bytes_per_row), _mm_srli_si128(lower, 8));
}
#else
static int16_t limited(int32_t sum) {
  int32_t value = (int32_t)((uint32_t)sum + (1u << 8)) >> 9;
  return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
}

// Sums wrap around, as those of vectors do.
static int32_t weighted(int16_t a, int32_t weight, int16_t b, int32_t other) {
  return (int32_t)((uint32_t)(a * weight) + (uint32_t)(b * other));
}

static void transform_lines(const int16_t in[16], int16_t out[16]) {
  for (int i = 0; i < 4; i++) {
    uint32_t sum = (uint32_t)weighted(in[i], FIRST, in[8 + i], THIRD);
    uint32_t rest = (uint32_t)weighted(in[i], FIRST, in[8 + i], -THIRD);
    uint32_t outer = (uint32_t)weighted(in[4 + i], SECOND, in[12 + i], FOURTH);
    uint32_t inner = (uint32_t)weighted(in[4 + i], SECOND_INNER, in[12 + i], -FOURTH_INNER);
    out[i] = limited((int32_t)(sum + outer));
    out[4 + i] = limited((int32_t)(rest + inner));
    out[8 + i] = limited((int32_t)(rest - inner));
    out[12 + i] = limited((int32_t)(sum - outer));
  }
}

void cpixels_transform_half(const int16_t block[16], void *rows, ptrdiff_t bytes_per_row) {
  int16_t lines[16], turned[16];
  transform_lines(block, lines);
  for (int y = 0; y < 4; y++)
    for (int x = 0; x < 4; x++) turned[4 * y + x] = lines[4 * x + y];
  transform_lines(turned, lines);
  for (int y = 0; y < 4; y++) memcpy((char *)rows + y * bytes_per_row, lines + 4 * y, 4 * sizeof *lines);
}

void cpixels_sum_rows(const int16_t *const *rows, const int16_t *weights, size_t stride, const int32_t counts[8],
                      const int16_t biases[8], size_t samples, int16_t *columns) {
  for (size_t x = 0; x < samples; x += STEP) {
    int16_t lines[8][STEP];
    for (size_t i = 0; i < 8; i++) {
      uint16_t sums[STEP];
      for (size_t k = 0; k < STEP; k++) sums[k] = (uint16_t)biases[i];
      for (int32_t n = 0; n < counts[i]; n++) {
        const int16_t *row = rows[i * stride + (size_t)n] + x;
        int32_t weight = weights[i * stride + (size_t)n];
        for (size_t k = 0; k < STEP; k++) sums[k] = (uint16_t)(sums[k] + (uint16_t)((row[k] * weight) >> 16));
      }
      memcpy(lines[i], sums, sizeof sums);
    }
    for (size_t k = 0; k < STEP; k++)
      for (size_t i = 0; i < 8; i++) columns[8 * (x + k) + i] = lines[i][k];
  }
}

static size_t store_eights(const uint8_t *columns, size_t samples, uint8_t *target, size_t bytes_per_line, int lines) {
  (void)columns, (void)samples, (void)target, (void)bytes_per_line, (void)lines;
  return 0;
}
#endif

void cpixels_store_lines(const uint8_t *columns, size_t samples, uint8_t *target, size_t bytes_per_line, int lines) {
  size_t begin = store_eights(columns, samples, target, bytes_per_line, lines);
  for (int i = 0; i < lines; i++)
    for (size_t x = begin; x < samples; x++) target[(size_t)i * bytes_per_line + x] = columns[8 * x + (size_t)i];
}

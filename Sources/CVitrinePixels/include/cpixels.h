// Loops of the resampler and of the JPEG decoder for the processor's vectors. The same result on every processor.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Eight lines of a picture, each the weighted sum of rows, transposed: columns[8 * x + line].
//
// rows and weights have `stride` entries for each line, of which `counts[line]` count. A product is shifted right by 16
// bits, rounded down, before it is added to `biases[line]`; sums wrap around.
// `samples`, of each row, is a multiple of 32.
void cpixels_sum_rows(const int16_t *const *rows, const int16_t *weights, size_t stride, const int32_t counts[8],
                      const int16_t biases[8], size_t samples, int16_t *columns);

// The first `lines` (1...8) of eight lines that are transposed:
// target[line * bytes_per_line + x] = columns[8 * x + line].
void cpixels_store_lines(const uint8_t *columns, size_t samples, uint8_t *target, size_t bytes_per_line, int lines);

// Four rows of four samples by the 4 x 4 lowest coefficients of a block, each times its step, column after column.
// A sample is the level less 128, in 1/256, limited to 16 bits. The rows are `bytes_per_row` apart.
void cpixels_transform_half(const int16_t block[16], void *rows, ptrdiff_t bytes_per_row);

#ifdef __cplusplus
}
#endif

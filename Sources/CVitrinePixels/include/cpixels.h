// Loops of the resampler and of decoders for the processor's vectors. The same result on every processor.
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

// Averages blocks of `factor` by `factor` pixels of rows as they come. Those at the right and bottom edge count though
// they are only partly covered.
typedef struct {
  uint8_t *pixels; // the means, rows without gaps; give back with free()
  size_t count;
  uint32_t columns, rows; // of the means
  // Of the functions below.
  uint64_t *sums;
  uint32_t width, height, factor, next;
  size_t channels, colors;
} cpixels_means;

// For a picture with pixels. With `is_weighted`, the last channel is alpha, by which the colours are multiplied. Zero if
// there is no memory.
int cpixels_means_start(cpixels_means *, uint32_t width, uint32_t height, uint32_t factor, int channels,
                        int is_weighted);
// The next of `height` rows.
void cpixels_means_add(cpixels_means *, const uint8_t *row);
// Gives back everything but the means.
void cpixels_means_finish(cpixels_means *);

// Predicts a square block of HEVC from the samples beside it (ITU-T H.265 §8.4.4.2).
//
// The side is 4, 8, 16 or 32. `border` has four times the side and one more: from the lowest sample at the left up to the
// corner, and on to the last at the right. `mode` is 0...34. Only luma is smoothed, blocks of 32 strongly if asked for.
void cpixels_hevc_predict(const uint8_t *border, unsigned log_side, unsigned mode, int is_luma, int is_strong,
                          uint8_t *to, size_t stride);

// Fills the tables of cpixels_hevc_add(). Once, before its first call.
void cpixels_hevc_start(void);

enum cpixels_hevc_residual { CPIXELS_HEVC_COSINE, CPIXELS_HEVC_SINE, CPIXELS_HEVC_SKIP, CPIXELS_HEVC_BYPASS };

// Adds a residual to a predicted block, by its scaled coefficients row by row (§8.6.4.2), and sets these to 0.
//
// All coefficients from `rows` and `columns` on are 0. Both are multiples of four, or 1 for the first coefficient alone.
// SINE is for blocks of 4.
void cpixels_hevc_add(int16_t *coefficients, unsigned log_side, enum cpixels_hevc_residual kind, unsigned rows,
                      unsigned columns, uint8_t *to, size_t stride);

// Filters four lines across an edge between two blocks of luma (§8.7.2.5.7). `edge` is the first sample behind the edge,
// whose neighbours are `across` and whose lines are `along` apart. `keeps` has bit 0 if the samples in front stay as they
// are, and bit 1 for those behind.
void cpixels_hevc_deblock_luma(uint8_t *edge, ptrdiff_t across, ptrdiff_t along, int beta, int tc, int keeps);

// The same for chroma (§8.7.2.5.8).
void cpixels_hevc_deblock_chroma(uint8_t *edge, ptrdiff_t across, ptrdiff_t along, int tc, int keeps);

// Adds offsets to the samples of four of 32 bands of values, of which `position` is the first (§8.7.3.2).
void cpixels_hevc_offset_bands(uint8_t *to, const uint8_t *from, size_t count, unsigned position,
                               const int8_t offsets[4]);

// Adds offsets to samples that are below or above those at the distances `neighbor` and -`neighbor`: below both, below
// one, above one, above both (§8.7.3.2).
void cpixels_hevc_offset_edges(uint8_t *to, const uint8_t *from, size_t count, ptrdiff_t neighbor,
                               const int8_t offsets[4]);

#ifdef __cplusplus
}
#endif

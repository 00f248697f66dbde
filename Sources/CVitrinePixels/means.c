#include "cpixels.h"
#include <stdlib.h>
#include <string.h>

// Means of blocks, for decoders of whole rows that have no reduced size of their own.

int cpixels_means_start(cpixels_means *m, uint32_t width, uint32_t height, uint32_t factor, int channels,
                        int is_weighted) {
  *m = (cpixels_means){
      .columns = (width - 1) / factor + 1, .rows = (height - 1) / factor + 1, .width = width, .height = height,
      .factor = factor, .channels = (size_t)channels, .colors = (size_t)channels - (is_weighted != 0)};
  size_t length = m->columns * m->channels;
  m->count = length * m->rows;
  m->pixels = calloc(m->count, 1);
  m->sums = calloc(length, sizeof *m->sums);
  return m->pixels && m->sums;
}

void cpixels_means_add(cpixels_means *m, const uint8_t *row) {
  size_t channels = m->channels, colors = m->colors, length = m->columns * channels;
  uint32_t factor = m->factor, y = m->next++;
  uint8_t *to = m->pixels + (size_t)(y / factor) * length;
  if (factor == 1) {
    memcpy(to, row, length);
    return;
  }
  for (uint32_t x = 0; x < m->width; x++, row += channels) {
    uint64_t *sum = m->sums + (size_t)(x / factor) * channels, weight = colors < channels ? row[colors] : 255;
    for (size_t i = 0; i < colors; i++) sum[i] += row[i] * weight;
    if (colors < channels) sum[colors] += row[colors] * (uint64_t)255;
  }
  if ((y + 1) % factor && y + 1 < m->height) return;
  for (uint32_t x = 0; x < m->columns; x++) {
    uint32_t across = m->width - x * factor < factor ? m->width - x * factor : factor;
    uint64_t area = (uint64_t)across * (y % factor + 1) * 255;
    for (size_t i = x * channels; i < (x + 1) * channels; i++) to[i] = (uint8_t)((m->sums[i] + area / 2) / area);
  }
  memset(m->sums, 0, length * sizeof *m->sums);
}

void cpixels_means_finish(cpixels_means *m) {
  free(m->sums);
  m->sums = NULL;
}

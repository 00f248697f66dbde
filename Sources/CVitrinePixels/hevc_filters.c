#include "cpixels.h"
#include <stdlib.h>

// The loop filters of HEVC (ITU-T H.265 §8.7), for samples of 8 bits.

static inline int limit(int v, int most) { return v < -most ? -most : v > most ? most : v; }
static inline uint8_t clip(int v) { return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v; }

void cpixels_hevc_deblock_luma(uint8_t *edge, ptrdiff_t across, ptrdiff_t along, int beta, int tc, int keeps) {
  const ptrdiff_t a = across;
  // The decisions of the first and the last line (8.7.2.5.3, 8.7.2.5.6).
  const uint8_t *first = edge, *last = edge + 3 * along;
  int p_first = abs(first[-3 * a] - 2 * first[-2 * a] + first[-a]);
  int q_first = abs(first[2 * a] - 2 * first[a] + first[0]);
  int p_last = abs(last[-3 * a] - 2 * last[-2 * a] + last[-a]);
  int q_last = abs(last[2 * a] - 2 * last[a] + last[0]);
  if (p_first + q_first + p_last + q_last >= beta) return;
  int is_strong = 1;
  for (int i = 0; i < 2; i++) {
    const uint8_t *s = i ? last : first;
    int bend = i ? p_last + q_last : p_first + q_first;
    is_strong &= 2 * bend < beta >> 2 && abs(s[-4 * a] - s[-a]) + abs(s[0] - s[3 * a]) < beta >> 3 &&
                 abs(s[-a] - s[0]) < (5 * tc + 1) >> 1;
  }
  int side = (beta + (beta >> 1)) >> 3;
  int has_p = p_first + p_last < side, has_q = q_first + q_last < side;
  for (int line = 0; line < 4; line++, edge += along) {
    int p0 = edge[-a], p1 = edge[-2 * a], p2 = edge[-3 * a], q0 = edge[0], q1 = edge[a], q2 = edge[2 * a];
    if (is_strong) {
      int p3 = edge[-4 * a], q3 = edge[3 * a];
      if (!(keeps & 1)) {
        edge[-a] = (uint8_t)(p0 + limit(((p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3) - p0, 2 * tc));
        edge[-2 * a] = (uint8_t)(p1 + limit(((p2 + p1 + p0 + q0 + 2) >> 2) - p1, 2 * tc));
        edge[-3 * a] = (uint8_t)(p2 + limit(((2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3) - p2, 2 * tc));
      }
      if (!(keeps & 2)) {
        edge[0] = (uint8_t)(q0 + limit(((p1 + 2 * p0 + 2 * q0 + 2 * q1 + q2 + 4) >> 3) - q0, 2 * tc));
        edge[a] = (uint8_t)(q1 + limit(((p0 + q0 + q1 + q2 + 2) >> 2) - q1, 2 * tc));
        edge[2 * a] = (uint8_t)(q2 + limit(((p0 + q0 + q1 + 3 * q2 + 2 * q3 + 4) >> 3) - q2, 2 * tc));
      }
      continue;
    }
    int step = (9 * (q0 - p0) - 3 * (q1 - p1) + 8) >> 4;
    if (abs(step) >= tc * 10) continue;
    step = limit(step, tc);
    if (!(keeps & 1)) {
      edge[-a] = clip(p0 + step);
      if (has_p) edge[-2 * a] = clip(p1 + limit((((p2 + p0 + 1) >> 1) - p1 + step) >> 1, tc >> 1));
    }
    if (!(keeps & 2)) {
      edge[0] = clip(q0 - step);
      if (has_q) edge[a] = clip(q1 + limit((((q2 + q0 + 1) >> 1) - q1 - step) >> 1, tc >> 1));
    }
  }
}

void cpixels_hevc_deblock_chroma(uint8_t *edge, ptrdiff_t across, ptrdiff_t along, int tc, int keeps) {
  for (int line = 0; line < 4; line++, edge += along) {
    int p0 = edge[-across], q0 = edge[0];
    int step = limit((((q0 - p0) * 4) + edge[-2 * across] - edge[across] + 4) >> 3, tc);
    if (!(keeps & 1)) edge[-across] = clip(p0 + step);
    if (!(keeps & 2)) edge[0] = clip(q0 - step);
  }
}

void cpixels_hevc_offset_bands(uint8_t *to, const uint8_t *from, size_t count, unsigned position,
                               const int8_t offsets[4]) {
  int8_t table[32] = {0};
  for (unsigned k = 0; k < 4; k++) table[(position + k) & 31] = offsets[k];
  for (size_t x = 0; x < count; x++) to[x] = clip(from[x] + table[from[x] >> 3]);
}

void cpixels_hevc_offset_edges(uint8_t *to, const uint8_t *from, size_t count, ptrdiff_t neighbor,
                               const int8_t offsets[4]) {
  // By the number of neighbours that are smaller, less those that are larger, and 2.
  const int8_t table[5] = {offsets[0], offsets[1], 0, offsets[2], offsets[3]};
  for (size_t x = 0; x < count; x++) {
    int v = from[x], a = from[(ptrdiff_t)x - neighbor], b = from[(ptrdiff_t)x + neighbor];
    to[x] = clip(v + table[2 + (v > a) - (v < a) + (v > b) - (v < b)]);
  }
}

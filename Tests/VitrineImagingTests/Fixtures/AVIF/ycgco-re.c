// Writes a lossless AVIF of 10 bits in YCgCo-Re (ITU-T H.273 matrix 16) of the picture that make.sh draws:
// cc ycgco-re.c -lavif && ./a.out > 444-ycgco-re.avif
#include <avif/avif.h>
#include <stdio.h>

int main(void) {
    enum { W = 75, H = 53 };
    avifImage *image = avifImageCreate(W, H, 10, AVIF_PIXEL_FORMAT_YUV444);
    avifImageAllocatePlanes(image, AVIF_PLANES_YUV);
    image->colorPrimaries = 1;
    image->transferCharacteristics = 13;
    image->matrixCoefficients = 16;
    image->yuvRange = AVIF_RANGE_FULL;
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < W; x++) {
            int r = 40 + x * 2, g = 200 - y * 3, b = 90 + (x + y) % 80;
            int co = r - b, t = b + (co >> 1), cg = g - t, values[] = {t + (cg >> 1), cg + 512, co + 512};
            for (int i = 0; i < 3; i++)
                ((uint16_t *)(image->yuvPlanes[i] + y * image->yuvRowBytes[i]))[x] = (uint16_t)values[i];
        }
    }
    avifEncoder *encoder = avifEncoderCreate();
    encoder->minQuantizer = encoder->maxQuantizer = AVIF_QUANTIZER_LOSSLESS;
    encoder->speed = 4;
    avifRWData output = AVIF_DATA_EMPTY;
    if (avifEncoderWrite(encoder, image, &output) != AVIF_RESULT_OK) return 1;
    fwrite(output.data, 1, output.size, stdout);
    return 0;
}

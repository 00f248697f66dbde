#include "cjxl.h"

#include "library.h"
#include <stdlib.h>
#include <string.h>

// Visual distance for a quality, as cjxl has it: 1 is hardly to be told from the original.
static float distance(int32_t quality) {
    double q = quality < 0 ? 0 : quality;
    return (float)(q >= 30 ? 0.1 + (100 - q) * 0.09 : 53.0 / 3000 * q * q - 23.0 / 20 * q + 25);
}

static cjxl_status drain(JxlEncoder *encoder, uint8_t **file, size_t *count) {
    size_t capacity = 64 << 10, used = 0;
    uint8_t *bytes = malloc(capacity);
    while (bytes) {
        uint8_t *next = bytes + used;
        size_t room = capacity - used;
        JxlEncoderStatus status = JxlEncoderProcessOutput(encoder, &next, &room);
        used = (size_t)(next - bytes);
        if (status == JXL_ENC_SUCCESS) {
            *file = bytes;
            *count = used;
            return CJXL_OK;
        }
        if (status != JXL_ENC_NEED_MORE_OUTPUT) {
            free(bytes);
            return CJXL_FAILED;
        }
        uint8_t *larger = realloc(bytes, capacity * 2);
        if (!larger) free(bytes);
        bytes = larger;
        capacity *= 2;
    }
    return CJXL_MEMORY;
}

static cjxl_status write(JxlEncoder *encoder, const uint8_t *pixels, const JxlBasicInfo *info, int32_t quality) {
    JxlColorEncoding color;
    JxlColorEncodingSetToSRGB(&color, JXL_FALSE);
    JxlEncoderFrameSettings *settings = JxlEncoderFrameSettingsCreate(encoder, NULL);
    if (!settings || JxlEncoderSetBasicInfo(encoder, info) || JxlEncoderSetColorEncoding(encoder, &color))
        return CJXL_FAILED;
    if (quality >= 100 ? JxlEncoderSetFrameLossless(settings, JXL_TRUE)
                       : JxlEncoderSetFrameDistance(settings, distance(quality)))
        return CJXL_FAILED;
    JxlPixelFormat format = {info->alpha_bits ? 4 : 3, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
    size_t size = (size_t)info->xsize * info->ysize * format.num_channels;
    if (JxlEncoderAddImageFrame(settings, &format, pixels, size)) return CJXL_FAILED;
    JxlEncoderCloseInput(encoder);
    return CJXL_OK;
}

cjxl_status cjxl_encode(const uint8_t *pixels, uint32_t width, uint32_t height, bool has_alpha, int32_t quality,
                        uint8_t **file, size_t *count) {
    size_t total = (size_t)width * height;
    uint8_t *opaque = NULL;
    if (!has_alpha) {
        opaque = malloc(total * 3);
        if (!opaque) return CJXL_MEMORY;
        for (size_t i = 0; i < total; i++) memcpy(opaque + 3 * i, pixels + 4 * i, 3);
    }
    JxlBasicInfo info;
    JxlEncoderInitBasicInfo(&info);
    info.xsize = width;
    info.ysize = height;
    info.bits_per_sample = 8;
    info.uses_original_profile = quality >= 100;
    if (has_alpha) {
        info.num_extra_channels = 1;
        info.alpha_bits = 8;
    }
    JxlEncoder *encoder = JxlEncoderCreate(NULL);
    cjxl_status status = encoder ? write(encoder, opaque ? opaque : pixels, &info, quality) : CJXL_MEMORY;
    if (!status) status = drain(encoder, file, count);
    if (encoder) JxlEncoderDestroy(encoder);
    free(opaque);
    return status;
}

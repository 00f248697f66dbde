#include "error.h"

static _Noreturn void on_error(j_common_ptr common) {
  cjpeg_errors *errors = (cjpeg_errors *)common->err;
  errors->base.format_message(common, errors->message);
  switch (errors->base.msg_code) {
  case JERR_OUT_OF_MEMORY:
  case JERR_WIDTH_OVERFLOW:
    errors->status = CJPEG_MEMORY;
    break;
  case JERR_SOF_UNSUPPORTED:
  case JERR_BAD_PRECISION:
  case JERR_CONVERSION_NOTIMPL:
  case JERR_ARITH_NOTIMPL:
  case JERR_NOTIMPL:
  case JERR_NOT_COMPILED:
  case JERR_FRACT_SAMPLE_NOTIMPL:
  case JERR_CCIR601_NOTIMPL:
    errors->status = CJPEG_UNSUPPORTED;
    break;
  default:
    errors->status = CJPEG_CORRUPT;
  }
  longjmp(errors->jump, 1);
}

// Level -1 is a warning. Some are about matters of form; these mean that samples are missing or wrong.
static void on_message(j_common_ptr common, int level) {
  if (level >= 0) return;
  cjpeg_errors *errors = (cjpeg_errors *)common->err;
  errors->base.num_warnings++;
  switch (errors->base.msg_code) {
  case JWRN_HIT_MARKER:
  case JWRN_HUFF_BAD_CODE:
  case JWRN_ARITH_BAD_CODE:
  case JWRN_MUST_RESYNC:
  case JWRN_BOGUS_PROGRESSION:
    errors->damaged = 1;
    break;
  default:
    break;
  }
}

static void on_output(j_common_ptr common) { (void)common; }

void cjpeg_errors_install(cjpeg_errors *errors) {
  jpeg_std_error(&errors->base);
  errors->base.error_exit = on_error;
  errors->base.emit_message = on_message;
  errors->base.output_message = on_output;
  errors->status = CJPEG_OK;
  errors->damaged = 0;
  errors->message[0] = 0;
}

_Noreturn void cjpeg_errors_raise(cjpeg_errors *errors, cjpeg_status status) {
  errors->status = status;
  longjmp(errors->jump, 1);
}

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#ifdef LIBJPEG_TURBO_VERSION
const char *cjpeg_version(void) { return TEXT(LIBJPEG_TURBO_VERSION); }
#else
const char *cjpeg_version(void) { return TEXT(JPEG_LIB_VERSION); }
#endif

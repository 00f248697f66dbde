// The library's error manager with a way back into our own functions.
#pragma once
#if !__has_include(<jpeglib.h>)
#error "jpeglib.h is missing. Install libjpeg-dev (Debian and Ubuntu) or jpeg-turbo (brew)."
#endif
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <jpeglib.h>
#include <jerror.h>
#include "cjpeg.h"

typedef struct {
  struct jpeg_error_mgr base;  // first: the library hands back a pointer to it
  jmp_buf jump;
  cjpeg_status status;
  int damaged;                 // a warning meant that samples are wrong
  char message[JMSG_LENGTH_MAX];
} cjpeg_errors;

void cjpeg_errors_install(cjpeg_errors *errors);
// Ends the library's work with a status of ours.
_Noreturn void cjpeg_errors_raise(cjpeg_errors *errors, cjpeg_status status);

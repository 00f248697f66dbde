// The interface of libjxl.
#pragma once

#if !__has_include(<jxl/decode.h>)
#error "jxl/decode.h is missing. Install libjxl-dev (Debian and Ubuntu), libjxl-devel (Fedora) or jpeg-xl (brew)."
#elif !__has_include(<jxl/version.h>)
#error "libjxl 0.7 or later is needed. Install a newer libjxl-dev (Debian and Ubuntu), libjxl-devel (Fedora) or jpeg-xl (brew)."
#endif
#include <jxl/decode.h>
#include <jxl/encode.h>
#include <jxl/version.h>

// poppler and cairo behind plain types: opening a PDF, its pages' sizes, drawing a page. For one thread.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    CPOPPLER_OK = 0,
    CPOPPLER_ENCRYPTED, // no password, or not the right one
    CPOPPLER_DAMAGED,
    CPOPPLER_NO_PAGE,   // no such page, or none that can be read
    CPOPPLER_MEMORY,
    CPOPPLER_UNDRAWN    // cairo refused something on the page, and nothing is seen of it
} cpoppler_status;

typedef struct cpoppler_document cpoppler_document;

// Silences the libraries, which would write to stderr. Call it first.
void cpoppler_start(void);
// Opens the bytes, which must stay until cpoppler_close(). `password` may be NULL; where one is needed it is tried as
// the user's and as the owner's, in Latin-1 and in UTF-8. As long as any document is open, the tables of poppler-data
// need not be read again.
cpoppler_status cpoppler_open(const void *bytes, size_t count, const char *password, cpoppler_document **);
void cpoppler_close(cpoppler_document *);

// Whether it does not open without a password.
bool cpoppler_needs_password(cpoppler_document *);
int32_t cpoppler_page_count(cpoppler_document *);
// Width and height of page `index` (from 0) in points: crop box within media box, turned as the page says.
cpoppler_status cpoppler_page_size(cpoppler_document *, int32_t index, double *width, double *height);
// The title in UTF-8 into `text`, cut to `size` bytes with the final 0. False when there is none.
bool cpoppler_title(cpoppler_document *, char *text, size_t size);

typedef struct {
    int32_t page;          // from 0
    int32_t width, height; // pixels that the whole page is drawn to
    uint8_t red, green, blue, alpha; // the paper behind the page, alpha not multiplied in
} cpoppler_drawing;

// Draws a page. `pixels` has room for rows without gaps: red, green and blue when the background is opaque
// (`alpha` 255), else these multiplied by alpha, and alpha.
cpoppler_status cpoppler_draw(cpoppler_document *, const cpoppler_drawing *, uint8_t *pixels);

// The version of poppler, for example "22.12.0".
const char *cpoppler_version(void);

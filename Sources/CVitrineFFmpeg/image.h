// Maps a shared library without the libraries that it names.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// Libraries that were mapped, in the order of their loading.
enum { CFFMPEG_IMAGES = 8 };

typedef struct {
    unsigned char *base;
    const void *symbols; // ElfW(Sym)
    const char *names;
    const unsigned *hash; // DT_GNU_HASH
} cffmpeg_image;

typedef struct {
    cffmpeg_image list[CFFMPEG_IMAGES];
    int count;
    // The beginnings of the names of libraries that dlopen(3) loads when a mapped one names them; ends with NULL.
    const char *const *needed;
    // Returns the address for a function that no library has.
    void *(*substitute)(const char *name);
} cffmpeg_images;

// Maps the library of this file name from the directories of the dynamic linker, and binds its references to the
// libraries in `images`, then to those of the process, then to substitutes. False if the file is not there or needs more
// than this loader does: nothing is mapped then.
bool cffmpeg_map_image(cffmpeg_images *images, const char *name);
// The address of a function of the mapped libraries; NULL if none has it.
void *cffmpeg_image_symbol(const cffmpeg_images *images, const char *name);

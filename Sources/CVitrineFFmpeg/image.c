// A loader for the libraries of FFmpeg. They name some eighty other libraries, for encoders, network protocols and
// graphics processors, which the dynamic linker loads and binds in 25 ms, before anything is decoded. The decoders on the
// list of this program call none of them. Whatever is unusual about a file is left to dlopen(3).
// Other machines than x86-64 always use dlopen. Format: System V ABI, generic and x86-64 supplement.
#include "image.h"
#include <stdlib.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ABSOLUTE = R_X86_64_64, DATA = R_X86_64_GLOB_DAT, CALL = R_X86_64_JUMP_SLOT, OWN = R_X86_64_RELATIVE };

void *cffmpeg_image_symbol(const cffmpeg_images *images, const char *name) {
    // The hash function and the table of DT_GNU_HASH, without its filter.
    uint32_t hash = 5381;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) hash = hash * 33 + *c;
    for (int i = 0; i < images->count; i++) {
        const cffmpeg_image *image = &images->list[i];
        uint32_t buckets = image->hash[0], first = image->hash[1], words = image->hash[2];
        const uint32_t *bucket = image->hash + 4 + words * (sizeof(ElfW(Addr)) / 4), *chain = bucket + buckets;
        const ElfW(Sym) *symbols = image->symbols;
        uint32_t n = buckets ? bucket[hash % buckets] : 0;
        if (n < first) continue;
        for (;; n++) {
            uint32_t entry = chain[n - first];
            const ElfW(Sym) *s = &symbols[n];
            if ((entry | 1) == (hash | 1) && s->st_shndx != SHN_UNDEF && !strcmp(image->names + s->st_name, name))
                return image->base + s->st_value;
            if (entry & 1) break;
        }
    }
    return NULL;
}

// What is mapped of a file, and what its dynamic section tells.
typedef struct {
    unsigned char *base, *reserved;
    size_t span;
    const ElfW(Phdr) *headers;
    int header_count;
    cffmpeg_image image;
    const ElfW(Dyn) *dynamic;
    const ElfW(Rela) *relocations[2];
    size_t relocation_counts[2];
    ElfW(Addr) initializer, initializers;
    size_t initializer_count;
} mapping;

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static int protection(const ElfW(Phdr) *p) {
    return (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
           (p->p_flags & PF_X ? PROT_EXEC : 0);
}

// Maps the segments of an open file, which has `size` bytes.
static bool map_segments(mapping *m, int fd, size_t size) {
    size_t page = page_size(), alignment = page, end = 0;
    for (int i = 0; i < m->header_count; i++) {
        const ElfW(Phdr) *p = &m->headers[i];
        // Thread-local data needs the dynamic linker.
        if (p->p_type == PT_TLS) return false;
        if (p->p_type != PT_LOAD) continue;
        bool is_writable_code = p->p_flags & PF_W && p->p_flags & PF_X;
        if (is_writable_code || p->p_filesz > p->p_memsz || p->p_offset > size || p->p_filesz > size - p->p_offset ||
            p->p_vaddr > SIZE_MAX / 4 || p->p_memsz > SIZE_MAX / 4 || (p->p_vaddr - p->p_offset) % page)
            return false;
        if (p->p_align > alignment && p->p_align <= 1 << 21) alignment = p->p_align;
        if (p->p_vaddr + p->p_memsz > end) end = p->p_vaddr + p->p_memsz;
    }
    if (!end) return false;
    m->span = ((end + page - 1) & ~(page - 1)) + alignment;
    m->reserved = mmap(NULL, m->span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->reserved == MAP_FAILED) return false;
    m->base = (unsigned char *)(((uintptr_t)m->reserved + alignment - 1) & ~(uintptr_t)(alignment - 1));
    for (int i = 0; i < m->header_count; i++) {
        const ElfW(Phdr) *p = &m->headers[i];
        if (p->p_type != PT_LOAD || !p->p_memsz) continue;
        size_t lead = p->p_vaddr % page, filled = lead + p->p_filesz, whole = lead + p->p_memsz;
        unsigned char *start = m->base + p->p_vaddr - lead;
        if (p->p_filesz && mmap(start, filled, protection(p), MAP_PRIVATE | MAP_FIXED, fd,
                                (off_t)(p->p_offset - lead)) == MAP_FAILED)
            return false;
        if (p->p_memsz == p->p_filesz) continue;
        // The rest of the last page, and pages of zeros.
        size_t mapped = p->p_filesz ? (filled + page - 1) & ~(page - 1) : 0;
        if (!(p->p_flags & PF_W)) return false;
        if (mapped) memset(start + filled, 0, (mapped < whole ? mapped : whole) - filled);
        if (whole > mapped && mmap(start + mapped, whole - mapped, protection(p),
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            return false;
    }
    return true;
}

static bool read_dynamic(mapping *m) {
    const ElfW(Dyn) *d = NULL;
    for (int i = 0; i < m->header_count; i++)
        if (m->headers[i].p_type == PT_DYNAMIC) d = (const void *)(m->base + m->headers[i].p_vaddr);
    if (!d) return false;
    m->dynamic = d;
    m->image.base = m->base;
    for (; d->d_tag != DT_NULL; d++) {
        const void *address = m->base + d->d_un.d_ptr;
        switch (d->d_tag) {
        case DT_SYMTAB: m->image.symbols = address; break;
        case DT_STRTAB: m->image.names = address; break;
        case DT_GNU_HASH: m->image.hash = address; break;
        case DT_RELA: m->relocations[0] = address; break;
        case DT_RELASZ: m->relocation_counts[0] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_JMPREL: m->relocations[1] = address; break;
        case DT_PLTRELSZ: m->relocation_counts[1] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_INIT: m->initializer = d->d_un.d_ptr; break;
        case DT_INIT_ARRAY: m->initializers = d->d_un.d_ptr; break;
        case DT_INIT_ARRAYSZ: m->initializer_count = d->d_un.d_val / sizeof(ElfW(Addr)); break;
        case DT_PLTREL:
            if (d->d_un.d_val != DT_RELA) return false;
            break;
        // Relocated code, and packed relocations.
        case DT_TEXTREL: case DT_REL: case 36 /* DT_RELR */: return false;
        default: break;
        }
    }
    return m->image.symbols && m->image.names && m->image.hash;
}

static void load_needed(const mapping *m, const char *const *needed) {
    for (const ElfW(Dyn) *d = m->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag != DT_NEEDED) continue;
        const char *name = m->image.names + d->d_un.d_val;
        for (const char *const *start = needed; *start; start++)
            if (!strncmp(name, *start, strlen(*start))) dlopen(name, RTLD_LAZY | RTLD_GLOBAL);
    }
}

// The address that a symbol of the file stands for.
static ElfW(Addr) resolve(const mapping *m, const cffmpeg_images *images, const ElfW(Sym) *s) {
    if (s->st_shndx != SHN_UNDEF) return (ElfW(Addr))m->base + s->st_value;
    const char *name = m->image.names + s->st_name;
    void *found = cffmpeg_image_symbol(images, name);
    if (!found) found = dlsym(RTLD_DEFAULT, name);
    if (found) return (ElfW(Addr))found;
    if (ELF64_ST_BIND(s->st_info) == STB_WEAK) return 0;
    return (ElfW(Addr))images->substitute(name);
}

static bool relocate(const mapping *m, const cffmpeg_images *images) {
    const ElfW(Sym) *symbols = m->image.symbols;
    for (int list = 0; list < 2; list++) {
        for (size_t i = 0; m->relocations[list] && i < m->relocation_counts[list]; i++) {
            const ElfW(Rela) *r = &m->relocations[list][i];
            const ElfW(Sym) *s = &symbols[ELF64_R_SYM(r->r_info)];
            ElfW(Addr) *place = (ElfW(Addr) *)(m->base + r->r_offset);
            // An indirect function runs code to choose its address.
            if (ELF64_R_SYM(r->r_info) && ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC) return false;
            switch (ELF64_R_TYPE(r->r_info)) {
            case OWN: *place = (ElfW(Addr))m->base + (ElfW(Addr))r->r_addend; break;
            case ABSOLUTE: *place = resolve(m, images, s) + (ElfW(Addr))r->r_addend; break;
            case DATA: case CALL: *place = resolve(m, images, s); break;
            default: return false;
            }
        }
    }
    size_t page = page_size();
    for (int i = 0; i < m->header_count; i++) {
        const ElfW(Phdr) *p = &m->headers[i];
        if (p->p_type != PT_GNU_RELRO) continue;
        size_t start = p->p_vaddr & ~(page - 1), end = (p->p_vaddr + p->p_memsz) & ~(page - 1);
        if (end > start && mprotect(m->base + start, end - start, PROT_READ)) return false;
    }
    return true;
}

static void initialize(const mapping *m) {
    static char *arguments[] = {(char *)"vitrine-video", NULL};
    typedef void (*function)(int, char **, char **);
    if (m->initializer) ((function)(m->base + m->initializer))(1, arguments, environ);
    const ElfW(Addr) *list = (const void *)(m->base + m->initializers);
    for (size_t i = 0; m->initializers && i < m->initializer_count; i++) ((function)list[i])(1, arguments, environ);
}

// Opens a library in the first directory of the dynamic linker that has it.
static int open_library(const char *name) {
    void *program = dlopen(NULL, RTLD_LAZY);
    Dl_serinfo size, *directories = NULL;
    int fd = -1;
    if (program && !dlinfo(program, RTLD_DI_SERINFOSIZE, &size) && (directories = malloc(size.dls_size))) {
        directories->dls_size = size.dls_size;
        directories->dls_cnt = size.dls_cnt;
        if (!dlinfo(program, RTLD_DI_SERINFO, directories)) {
            for (unsigned i = 0; fd < 0 && i < directories->dls_cnt; i++) {
                char path[4096];
                int n = snprintf(path, sizeof path, "%s/%s", directories->dls_serpath[i].dls_name, name);
                if (n > 0 && (size_t)n < sizeof path) fd = open(path, O_RDONLY | O_CLOEXEC);
            }
        }
    }
    free(directories);
    if (program) dlclose(program);
    return fd;
}

static bool map_file(mapping *m, cffmpeg_images *images, int fd, unsigned char *head, size_t capacity) {
    struct stat status;
    ssize_t count = pread(fd, head, capacity, 0);
    const ElfW(Ehdr) *file = (const void *)head;
    if (fstat(fd, &status) || count < (ssize_t)sizeof *file || memcmp(file->e_ident, ELFMAG, SELFMAG) ||
        file->e_ident[EI_CLASS] != ELFCLASS64 || file->e_machine != EM_X86_64 || file->e_type != ET_DYN ||
        file->e_phentsize != sizeof(ElfW(Phdr)) || file->e_phoff > (size_t)count ||
        file->e_phnum > ((size_t)count - file->e_phoff) / sizeof(ElfW(Phdr)) || file->e_phoff % sizeof(ElfW(Addr)))
        return false;
    m->headers = (const void *)(head + file->e_phoff);
    m->header_count = file->e_phnum;
    if (!map_segments(m, fd, (size_t)status.st_size) || !read_dynamic(m)) return false;
    load_needed(m, images->needed);
    return relocate(m, images);
}

bool cffmpeg_map_image(cffmpeg_images *images, const char *name) {
    _Alignas(ElfW(Addr)) unsigned char head[4096];
    mapping m = {0};
    int fd = images->count < CFFMPEG_IMAGES ? open_library(name) : -1;
    if (fd < 0) return false;
    m.reserved = MAP_FAILED;
    bool is_done = map_file(&m, images, fd, head, sizeof head);
    close(fd);
    if (!is_done) {
        if (m.reserved != MAP_FAILED) munmap(m.reserved, m.span);
        return false;
    }
    initialize(&m);
    images->list[images->count++] = m.image;
    return true;
}

#else
bool cffmpeg_map_image(cffmpeg_images *images, const char *name) {
    (void)images; (void)name;
    return false;
}

void *cffmpeg_image_symbol(const cffmpeg_images *images, const char *name) {
    (void)images; (void)name;
    return NULL;
}
#endif

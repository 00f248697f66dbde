// Lets calls of the system fail for the files below a directory, for Checks/Faults/run. Loaded by LD_PRELOAD.
//
// FAULT_DIRECTORY names the directory, FAULT_CONTROL a file of 24 bytes that the runner maps as well:
//   mode     0 calls as always, 1 all of them fail, 2 the Nth one fails, 3 the process is killed before the Nth one
//   code     the error of errno(3)
//   classes  the bits below
//   number   N, from 1 on
//   calls    counts the calls of these classes while the mode is not 0
//   failures counts those that failed
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 1, READ = 2, WRITE = 4, SYNC = 8, NAMES = 16, SIZE = 32, STATUS = 64, MAP = 128 };
enum { MODE, CODE, CLASSES, NUMBER, CALLS, FAILURES };

static const char *directory;
static volatile int *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_CONTROL");
    directory = getenv("FAULT_DIRECTORY");
    if (!path || !directory) return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (file < 0) return;
    void *mapped = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (mapped != MAP_FAILED) control = mapped;
}

static int is_below(const char *path) {
    return path && strncmp(path, directory, strlen(directory)) == 0;
}

static int is_open_below(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    long count = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (count < 0) return 0;
    path[count] = 0;
    return is_below(path);
}

// Whether a call of a class is to fail now. Sets errno then.
static int fails(int class, int concerns_directory) {
    int kept = errno;
    if (!concerns_directory || !(control[CLASSES] & class)) return 0;
    int number = __sync_add_and_fetch(&control[CALLS], 1);
    if (control[MODE] != 1 && number != control[NUMBER]) {
        errno = kept;
        return 0;
    }
    if (control[MODE] == 3) syscall(SYS_kill, getpid(), SIGKILL);
    __sync_add_and_fetch(&control[FAILURES], 1);
    errno = control[CODE];
    return 1;
}

static int is_armed(void) { return control && control[MODE]; }

#define FAILS_FILE(class, file) (is_armed() && fails(class, is_open_below(file)))
#define FAILS_PATH(class, path) (is_armed() && fails(class, is_below(path)))

// Defines a function that fails under a condition and calls the one of the C library otherwise.
#define REPLACE(result, name, parameters, arguments, condition, failure) \
    result name parameters {                                             \
        static result(*next) parameters;                                 \
        if (!next) next = (result(*) parameters)dlsym(RTLD_NEXT, #name); \
        if (condition) return failure;                                   \
        return next arguments;                                           \
    }

REPLACE(ssize_t, read, (int f, void *p, size_t n), (f, p, n), FAILS_FILE(READ, f), -1)
REPLACE(ssize_t, pread, (int f, void *p, size_t n, off_t o), (f, p, n, o), FAILS_FILE(READ, f), -1)
REPLACE(ssize_t, pread64, (int f, void *p, size_t n, off64_t o), (f, p, n, o), FAILS_FILE(READ, f), -1)
REPLACE(ssize_t, write, (int f, const void *p, size_t n), (f, p, n), FAILS_FILE(WRITE, f), -1)
REPLACE(ssize_t, pwrite, (int f, const void *p, size_t n, off_t o), (f, p, n, o), FAILS_FILE(WRITE, f), -1)
REPLACE(ssize_t, pwrite64, (int f, const void *p, size_t n, off64_t o), (f, p, n, o), FAILS_FILE(WRITE, f), -1)
REPLACE(ssize_t, writev, (int f, const struct iovec *v, int n), (f, v, n), FAILS_FILE(WRITE, f), -1)
REPLACE(int, fsync, (int f), (f), FAILS_FILE(SYNC, f), -1)
REPLACE(int, fdatasync, (int f), (f), FAILS_FILE(SYNC, f), -1)
REPLACE(int, ftruncate, (int f, off_t n), (f, n), FAILS_FILE(SIZE, f), -1)
REPLACE(int, ftruncate64, (int f, off64_t n), (f, n), FAILS_FILE(SIZE, f), -1)
REPLACE(int, truncate, (const char *p, off_t n), (p, n), FAILS_PATH(SIZE, p), -1)
REPLACE(int, posix_fallocate, (int f, off_t o, off_t n), (f, o, n), FAILS_FILE(SIZE, f), control[CODE])
REPLACE(int, fallocate, (int f, int m, off_t o, off_t n), (f, m, o, n), FAILS_FILE(SIZE, f), -1)
REPLACE(int, fstat, (int f, struct stat *s), (f, s), FAILS_FILE(STATUS, f), -1)
REPLACE(int, rename, (const char *a, const char *b), (a, b), FAILS_PATH(NAMES, b), -1)
REPLACE(int, renameat2, (int d, const char *a, int e, const char *b, unsigned n), (d, a, e, b, n),
    FAILS_PATH(NAMES, b), -1)
REPLACE(int, link, (const char *a, const char *b), (a, b), FAILS_PATH(NAMES, b), -1)
REPLACE(int, symlink, (const char *a, const char *b), (a, b), FAILS_PATH(NAMES, b), -1)
REPLACE(int, unlink, (const char *a), (a), FAILS_PATH(NAMES, a), -1)
REPLACE(int, mkdir, (const char *a, mode_t m), (a, m), FAILS_PATH(NAMES, a), -1)
REPLACE(void *, mmap, (void *a, size_t n, int p, int g, int f, off_t o), (a, n, p, g, f, o),
    f >= 0 && FAILS_FILE(MAP, f), MAP_FAILED)

static mode_t mode_argument(int flags, va_list arguments) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define REPLACE_OPEN(name)                                                                  \
    int name(const char *path, int flags, ...) {                                            \
        static int (*next)(const char *, int, ...);                                         \
        if (!next) next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);         \
        va_list arguments;                                                                  \
        va_start(arguments, flags);                                                         \
        mode_t mode = mode_argument(flags, arguments);                                      \
        va_end(arguments);                                                                  \
        return FAILS_PATH(OPEN, path) ? -1 : next(path, flags, mode);                       \
    }

REPLACE_OPEN(open)
REPLACE_OPEN(open64)

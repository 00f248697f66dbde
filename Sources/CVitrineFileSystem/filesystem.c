#include "cfilesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <linux/fs.h>
#endif

int cfilesystem_rename_exclusive(const char *from, const char *to) {
#if defined(__APPLE__)
    if (renamex_np(from, to, RENAME_EXCL) == 0) return 0;
    if (errno != ENOTSUP) return errno;
#elif defined(__linux__) && defined(RENAME_NOREPLACE)
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    // File systems that do not know the flag say EINVAL; old kernels ENOSYS (rename(2)).
    if (errno != EINVAL && errno != ENOSYS) return errno;
#endif
    if (link(from, to) != 0) return errno;
    return unlink(from) == 0 ? 0 : errno;
}

int cfilesystem_clone(int from, int to) {
#if defined(__linux__)
    return ioctl(to, FICLONE, from) == 0 ? 0 : errno;
#else
    (void)from;
    (void)to;
    return EOPNOTSUPP;
#endif
}

int cfilesystem_synchronize_all(int descriptor) {
#if defined(__linux__)
    return syncfs(descriptor) == 0 ? 0 : errno;
#else
    (void)descriptor;
    sync();
    return 0;
#endif
}

int64_t cfilesystem_read_resident(int descriptor, void *target, size_t count, int64_t offset) {
#if defined(__linux__) && defined(SYS_preadv2) && defined(RWF_NOWAIT)
    size_t done = 0;
    while (done < count) {
        struct iovec part = {.iov_base = (char *)target + done, .iov_len = count - done};
        int64_t position = offset + (int64_t)done;
        // Not by its function, which not every C library has. The kernel takes the offset in two words.
        long got = syscall(
            SYS_preadv2, (long)descriptor, &part, 1L, (long)position,
            sizeof(long) == 8 ? 0L : (long)(position >> 32), (long)RWF_NOWAIT);
        if (got == 0) break;
        if (got > 0) {
            done += (size_t)got;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return (int64_t)done;
#else
    (void)descriptor;
    (void)target;
    (void)count;
    (void)offset;
    return -1;
#endif
}

int cfilesystem_punch(int descriptor, int64_t offset, int64_t count) {
#if defined(__linux__)
    // A call for a hole costs as much as one that makes it.
    off_t data = lseek(descriptor, (off_t)offset, SEEK_DATA);
    if (data < 0 ? errno == ENXIO : data >= (off_t)(offset + count)) return 0;
    int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    return fallocate(descriptor, mode, (off_t)offset, (off_t)count) == 0 ? 0 : errno;
#elif defined(F_PUNCHHOLE)
    struct fpunchhole hole = {.fp_offset = offset, .fp_length = count};
    return fcntl(descriptor, F_PUNCHHOLE, &hole) == 0 ? 0 : errno;
#else
    (void)descriptor;
    (void)offset;
    (void)count;
    return EOPNOTSUPP;
#endif
}

#include "cfilesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/ioctl.h>
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

#ifndef CFILESYSTEM_H
#define CFILESYSTEM_H

#include <stddef.h>
#include <stdint.h>

/// Calls of the system that Swift's modules for the C libraries leave out.

/// Renames without replacing anything, in one step where the file system can; elsewhere by a link and an unlink, between
/// which both names exist. Returns 0 or an errno.
int cfilesystem_rename_exclusive(const char *from, const char *to);

/// Makes `to` a copy of `from` that shares its blocks until one of them is changed. Returns 0 or an errno; where the
/// file system cannot, EOPNOTSUPP or another one, and `to` is as it was.
int cfilesystem_clone(int from, int to);

/// Returns when all that was written to the file system of `descriptor` is on the medium: 0 or an errno.
int cfilesystem_synchronize_all(int descriptor);

/// Reads bytes that the system has in memory, without waiting for the disk (preadv2(2), RWF_NOWAIT). Returns their
/// number, which is less than `count` only at the end of the file; or -1 where some of them are not in memory, where the
/// file system cannot tell, on other systems than Linux, and for an error.
int64_t cfilesystem_read_resident(int descriptor, void *target, size_t count, int64_t offset);

/// Gives the disk blocks of a part of a file back: it reads as zeros. Returns 0 or an errno, EOPNOTSUPP where the file
/// system cannot.
int cfilesystem_punch(int descriptor, int64_t offset, int64_t count);

#endif

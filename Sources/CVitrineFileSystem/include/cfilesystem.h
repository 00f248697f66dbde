#ifndef CFILESYSTEM_H
#define CFILESYSTEM_H

/// Calls of the system that Swift's modules for the C libraries leave out.

/// Renames without replacing anything, in one step where the file system can; elsewhere by a link and an unlink, between
/// which both names exist. Returns 0 or an errno.
int cfilesystem_rename_exclusive(const char *from, const char *to);

/// Makes `to` a copy of `from` that shares its blocks until one of them is changed. Returns 0 or an errno; where the
/// file system cannot, EOPNOTSUPP or another one, and `to` is as it was.
int cfilesystem_clone(int from, int to);

/// Returns when all that was written to the file system of `descriptor` is on the medium: 0 or an errno.
int cfilesystem_synchronize_all(int descriptor);

#endif

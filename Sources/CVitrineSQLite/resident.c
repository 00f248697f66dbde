// A layer over SQLite's own file system that reads only what is in memory, for threads that must not wait.
#include "csqlite.h"

#include <cfilesystem.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

// A file of the layer, with the memory of SQLite's own file behind it.
typedef struct {
    sqlite3_file base;
    sqlite3_file *file;
    // Where it is read without waiting; -1 while reads may wait.
    int descriptor;
    int owns_descriptor;
} resident_file;

static sqlite3_vfs *system_vfs;
static sqlite3_vfs resident_vfs;

static sqlite3_file *below(sqlite3_file *file) { return ((resident_file *)file)->file; }

static int resident_close(sqlite3_file *file) {
    resident_file *self = (resident_file *)file;
    if (self->owns_descriptor) close(self->descriptor);
    self->owns_descriptor = 0;
    self->descriptor = -1;
    return self->file->pMethods->xClose(self->file);
}

static int resident_read(sqlite3_file *file, void *target, int count, sqlite3_int64 offset) {
    resident_file *self = (resident_file *)file;
    if (self->descriptor < 0) return self->file->pMethods->xRead(self->file, target, count, offset);
    int64_t got = cfilesystem_read_resident(self->descriptor, target, (size_t)count, offset);
    if (got == count) return SQLITE_OK;
    if (got < 0) return SQLITE_IOERR_BLOCKED;
    // SQLite relies on the zeros (https://www.sqlite.org/c3ref/io_methods.html).
    memset((char *)target + got, 0, (size_t)(count - got));
    return SQLITE_IOERR_SHORT_READ;
}

static int resident_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    return below(file)->pMethods->xWrite(below(file), bytes, count, offset);
}

static int resident_truncate(sqlite3_file *file, sqlite3_int64 size) {
    return below(file)->pMethods->xTruncate(below(file), size);
}

static int resident_sync(sqlite3_file *file, int flags) { return below(file)->pMethods->xSync(below(file), flags); }

static int resident_size(sqlite3_file *file, sqlite3_int64 *size) {
    return below(file)->pMethods->xFileSize(below(file), size);
}

static int resident_lock(sqlite3_file *file, int level) { return below(file)->pMethods->xLock(below(file), level); }

static int resident_unlock(sqlite3_file *file, int level) {
    return below(file)->pMethods->xUnlock(below(file), level);
}

static int resident_check_lock(sqlite3_file *file, int *result) {
    return below(file)->pMethods->xCheckReservedLock(below(file), result);
}

static int resident_control(sqlite3_file *file, int operation, void *argument) {
    return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

static int resident_sector(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }

static int resident_device(sqlite3_file *file) {
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int resident_map_index(sqlite3_file *file, int region, int size, int extends, void volatile **address) {
    return below(file)->pMethods->xShmMap(below(file), region, size, extends, address);
}

static int resident_lock_index(sqlite3_file *file, int offset, int count, int flags) {
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}

static void resident_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }

static int resident_unmap_index(sqlite3_file *file, int deletes) {
    return below(file)->pMethods->xShmUnmap(below(file), deletes);
}

// Without xFetch: a mapped page that is not in memory would be waited for.
static const sqlite3_io_methods resident_methods = {
    .iVersion = 2,
    .xClose = resident_close,
    .xRead = resident_read,
    .xWrite = resident_write,
    .xTruncate = resident_truncate,
    .xSync = resident_sync,
    .xFileSize = resident_size,
    .xLock = resident_lock,
    .xUnlock = resident_unlock,
    .xCheckReservedLock = resident_check_lock,
    .xFileControl = resident_control,
    .xSectorSize = resident_sector,
    .xDeviceCharacteristics = resident_device,
    .xShmMap = resident_map_index,
    .xShmLock = resident_lock_index,
    .xShmBarrier = resident_barrier,
    .xShmUnmap = resident_unmap_index,
};

static int resident_open(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    (void)vfs;
    resident_file *self = (resident_file *)file;
    self->base.pMethods = NULL;
    self->file = (sqlite3_file *)(self + 1);
    self->descriptor = -1;
    self->owns_descriptor = 0;
    memset(self->file, 0, (size_t)system_vfs->szOsFile);
    int code = system_vfs->xOpen(system_vfs, name, self->file, flags, out_flags);
    // With methods it is closed, also if it could not be opened.
    if (self->file->pMethods) self->base.pMethods = &resident_methods;
    return code;
}

// SQLite tries again at once, and gives up after a limited number of times.
static int resident_sleep(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    return microseconds;
}

static void register_vfs(void) {
    if (sqlite3_initialize() != SQLITE_OK) return;
    sqlite3_vfs *found = sqlite3_vfs_find("unix");
    if (!found) return;
    system_vfs = found;
    resident_vfs = *found;
    resident_vfs.pNext = NULL;
    resident_vfs.zName = "vitrine-resident";
    resident_vfs.szOsFile = (int)sizeof(resident_file) + found->szOsFile;
    resident_vfs.xOpen = resident_open;
    resident_vfs.xSleep = resident_sleep;
    if (sqlite3_vfs_register(&resident_vfs, 0) != SQLITE_OK) system_vfs = NULL;
}

const char *csqlite_resident_vfs(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_vfs);
    return system_vfs ? resident_vfs.zName : NULL;
}

static resident_file *resident(sqlite3 *connection, int operation) {
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(connection, "main", operation, &file) != SQLITE_OK || !file) return NULL;
    return file->pMethods == &resident_methods ? (resident_file *)file : NULL;
}

int csqlite_stop_waiting(sqlite3 *connection, int descriptor) {
    resident_file *database = resident(connection, SQLITE_FCNTL_FILE_POINTER);
    // That of the log, in write-ahead mode (sqlite3PagerJrnlFile).
    resident_file *log = resident(connection, SQLITE_FCNTL_JOURNAL_POINTER);
    const char *name = sqlite3_db_filename(connection, "main");
    if (!database || !log || !name || descriptor < 0) return SQLITE_MISUSE;
    char byte;
    // A file system that cannot tell what is in memory would answer every read like this.
    if (cfilesystem_read_resident(descriptor, &byte, 1, 0) < 0) return SQLITE_IOERR_BLOCKED;
    int log_descriptor = open(sqlite3_filename_wal(name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (log_descriptor < 0) return SQLITE_CANTOPEN;
    sqlite3_busy_timeout(connection, 0);
    log->descriptor = log_descriptor;
    log->owns_descriptor = 1;
    database->descriptor = descriptor;
    return SQLITE_OK;
}

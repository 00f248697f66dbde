// A layer over SQLite's own file system, in two kinds: one reads only what is in memory, for threads that must not
// wait; the other writes the pages that a transaction adds to the log together.
#include "csqlite.h"

#include <cfilesystem.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A file of the layer, with the memory of SQLite's own file behind it.
typedef struct layer_file {
    sqlite3_file base;
    sqlite3_file *file;
    // Where it is read without waiting; -1 while reads may wait.
    int descriptor;
    int owns_descriptor;
    // Of a database whose log gathers: the log. Of that log: the database.
    struct layer_file *partner;
    // Of a log: the end of it that is not written yet.
    unsigned char *pending;
    int64_t pending_start;
    int pending_count;
    // Of a log: whether a transaction adds to it, whether a frame's page comes next, and whether it is the last one.
    int gathers;
    int expects_page;
    int ends_transaction;
} layer_file;

static sqlite3_vfs *system_vfs;
static sqlite3_vfs resident_vfs;
static sqlite3_vfs gathering_vfs;

static sqlite3_file *below(sqlite3_file *file) { return ((layer_file *)file)->file; }

// So much is gathered at most. SQLite's own file system writes less than 128 KiB by one call.
enum { pending_limit = 1 << 16, frame_header_bytes = 24 };

static int flush_pending(layer_file *self) {
    if (!self->pending_count) return SQLITE_OK;
    int count = self->pending_count;
    self->pending_count = 0;
    return self->file->pMethods->xWrite(self->file, self->pending, count, self->pending_start);
}

// Adds bytes behind those that are pending. Returns 0 where they are to be written by themselves.
static int append_pending(layer_file *self, const void *bytes, int count, int64_t offset) {
    if (self->pending_count && self->pending_start + self->pending_count != offset) return 0;
    if (count > pending_limit - self->pending_count) return 0;
    if (!self->pending) self->pending = malloc(pending_limit);
    if (!self->pending) return 0;
    if (!self->pending_count) self->pending_start = offset;
    memcpy(self->pending + self->pending_count, bytes, (size_t)count);
    self->pending_count += count;
    return 1;
}

// A frame of the log is a header of 24 bytes and a page, which SQLite writes one by one. The header of the last frame
// of a transaction has the size of the database in its second word, which is 0 in all others
// (https://www.sqlite.org/fileformat2.html, 4.1). SQLite announces the transaction to readers after it has written that
// frame, so all of them are written by then, and a failure is returned by that write.
static int gather_write(layer_file *self, const void *bytes, int count, sqlite3_int64 offset) {
    const unsigned char *header = bytes;
    int is_header = !self->expects_page && count == frame_header_bytes;
    if (is_header) self->ends_transaction = (header[4] | header[5] | header[6] | header[7]) != 0;
    int is_last = !is_header && self->expects_page && self->ends_transaction;
    int is_frame = is_header || self->expects_page;
    self->expects_page = is_header;
    if (is_last) self->gathers = 0;
    if (is_frame && append_pending(self, bytes, count, offset)) return is_last ? flush_pending(self) : SQLITE_OK;
    int code = flush_pending(self);
    if (code != SQLITE_OK) return code;
    // What was flushed left room for it.
    if (is_frame && append_pending(self, bytes, count, offset)) return is_last ? flush_pending(self) : SQLITE_OK;
    // Anything else is written as it comes.
    return self->file->pMethods->xWrite(self->file, bytes, count, offset);
}

static int layer_close(sqlite3_file *file) {
    layer_file *self = (layer_file *)file;
    if (self->owns_descriptor) close(self->descriptor);
    self->owns_descriptor = 0;
    self->descriptor = -1;
    if (self->partner) self->partner->partner = NULL;
    self->partner = NULL;
    free(self->pending);
    self->pending = NULL;
    self->pending_count = 0;
    return self->file->pMethods->xClose(self->file);
}

static int layer_read(sqlite3_file *file, void *target, int count, sqlite3_int64 offset) {
    layer_file *self = (layer_file *)file;
    if (self->descriptor < 0) {
        int code = flush_pending(self);
        return code == SQLITE_OK ? self->file->pMethods->xRead(self->file, target, count, offset) : code;
    }
    int64_t got = cfilesystem_read_resident(self->descriptor, target, (size_t)count, offset);
    if (got == count) return SQLITE_OK;
    if (got < 0) return SQLITE_IOERR_BLOCKED;
    // SQLite relies on the zeros (https://www.sqlite.org/c3ref/io_methods.html).
    memset((char *)target + got, 0, (size_t)(count - got));
    return SQLITE_IOERR_SHORT_READ;
}

static int layer_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    layer_file *self = (layer_file *)file;
    if (self->gathers) return gather_write(self, bytes, count, offset);
    return self->file->pMethods->xWrite(self->file, bytes, count, offset);
}

static int layer_truncate(sqlite3_file *file, sqlite3_int64 size) {
    int code = flush_pending((layer_file *)file);
    return code == SQLITE_OK ? below(file)->pMethods->xTruncate(below(file), size) : code;
}

static int layer_sync(sqlite3_file *file, int flags) {
    int code = flush_pending((layer_file *)file);
    return code == SQLITE_OK ? below(file)->pMethods->xSync(below(file), flags) : code;
}

static int layer_size(sqlite3_file *file, sqlite3_int64 *size) {
    int code = flush_pending((layer_file *)file);
    return code == SQLITE_OK ? below(file)->pMethods->xFileSize(below(file), size) : code;
}

static int layer_lock(sqlite3_file *file, int level) { return below(file)->pMethods->xLock(below(file), level); }

static int layer_unlock(sqlite3_file *file, int level) {
    return below(file)->pMethods->xUnlock(below(file), level);
}

static int layer_check_lock(sqlite3_file *file, int *result) {
    return below(file)->pMethods->xCheckReservedLock(below(file), result);
}

static int layer_control(sqlite3_file *file, int operation, void *argument) {
    return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

static int layer_sector(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }

static int layer_device(sqlite3_file *file) {
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int layer_map_index(sqlite3_file *file, int region, int size, int extends, void volatile **address) {
    return below(file)->pMethods->xShmMap(below(file), region, size, extends, address);
}

static int layer_lock_index(sqlite3_file *file, int offset, int count, int flags) {
    layer_file *log = ((layer_file *)file)->partner;
    // The first lock is that of the one writer (https://www.sqlite.org/walformat.html, 2.3). What is still pending when
    // it ends was rolled back.
    int is_writer = log && offset == 0 && (flags & SQLITE_SHM_EXCLUSIVE);
    if (is_writer && (flags & SQLITE_SHM_UNLOCK)) {
        log->gathers = log->expects_page = log->pending_count = 0;
    }
    int code = below(file)->pMethods->xShmLock(below(file), offset, count, flags);
    if (is_writer && (flags & SQLITE_SHM_LOCK) && code == SQLITE_OK) log->gathers = 1;
    return code;
}

static void layer_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }

static int layer_unmap_index(sqlite3_file *file, int deletes) {
    return below(file)->pMethods->xShmUnmap(below(file), deletes);
}

// Without xFetch: a mapped page that is not in memory would be waited for.
static const sqlite3_io_methods layer_methods = {
    .iVersion = 2,
    .xClose = layer_close,
    .xRead = layer_read,
    .xWrite = layer_write,
    .xTruncate = layer_truncate,
    .xSync = layer_sync,
    .xFileSize = layer_size,
    .xLock = layer_lock,
    .xUnlock = layer_unlock,
    .xCheckReservedLock = layer_check_lock,
    .xFileControl = layer_control,
    .xSectorSize = layer_sector,
    .xDeviceCharacteristics = layer_device,
    .xShmMap = layer_map_index,
    .xShmLock = layer_lock_index,
    .xShmBarrier = layer_barrier,
    .xShmUnmap = layer_unmap_index,
};

static int layer_open(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    (void)vfs;
    layer_file *self = (layer_file *)file;
    self->base.pMethods = NULL;
    self->file = (sqlite3_file *)(self + 1);
    self->descriptor = -1;
    self->owns_descriptor = 0;
    self->partner = NULL;
    self->pending = NULL;
    self->pending_start = 0;
    self->pending_count = 0;
    self->gathers = self->expects_page = self->ends_transaction = 0;
    memset(self->file, 0, (size_t)system_vfs->szOsFile);
    int code = system_vfs->xOpen(system_vfs, name, self->file, flags, out_flags);
    // With methods it is closed, also if it could not be opened.
    if (self->file->pMethods) self->base.pMethods = &layer_methods;
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
    gathering_vfs = *found;
    gathering_vfs.pNext = NULL;
    gathering_vfs.zName = "vitrine-gathering";
    gathering_vfs.szOsFile = (int)sizeof(layer_file) + found->szOsFile;
    gathering_vfs.xOpen = layer_open;
    resident_vfs = gathering_vfs;
    resident_vfs.zName = "vitrine-resident";
    resident_vfs.xSleep = resident_sleep;
    if (sqlite3_vfs_register(&resident_vfs, 0) != SQLITE_OK
        || sqlite3_vfs_register(&gathering_vfs, 0) != SQLITE_OK) system_vfs = NULL;
}

static pthread_once_t registration = PTHREAD_ONCE_INIT;

const char *csqlite_resident_vfs(void) {
    pthread_once(&registration, register_vfs);
    return system_vfs ? resident_vfs.zName : NULL;
}

const char *csqlite_gathering_vfs(void) {
#ifdef __linux__
    pthread_once(&registration, register_vfs);
    return system_vfs ? gathering_vfs.zName : NULL;
#else
    // Elsewhere SQLite's own choice of a file system also chooses how files are locked.
    return NULL;
#endif
}

static layer_file *layer_of(sqlite3 *connection, int operation) {
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(connection, "main", operation, &file) != SQLITE_OK || !file) return NULL;
    return file->pMethods == &layer_methods ? (layer_file *)file : NULL;
}

int csqlite_stop_waiting(sqlite3 *connection, int descriptor) {
    layer_file *database = layer_of(connection, SQLITE_FCNTL_FILE_POINTER);
    // That of the log, in write-ahead mode (sqlite3PagerJrnlFile).
    layer_file *log = layer_of(connection, SQLITE_FCNTL_JOURNAL_POINTER);
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

int csqlite_gather_log(sqlite3 *connection) {
    layer_file *database = layer_of(connection, SQLITE_FCNTL_FILE_POINTER);
    layer_file *log = layer_of(connection, SQLITE_FCNTL_JOURNAL_POINTER);
    if (!database || !log || database == log || database->partner || log->partner) return SQLITE_MISUSE;
    database->partner = log;
    log->partner = database;
    return SQLITE_OK;
}

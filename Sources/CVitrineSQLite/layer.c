// A layer over SQLite's own file system, for all connections. It corrects five habits of that file system:
//
// - A file that cannot be opened for writing is opened for reading, and stays so as long as the connection exists. Here
//   the open fails, so that the next one can succeed.
// - The error of a file that cannot be created is that of a second open, which does not create it. Here it is the
//   reason.
// - A failed read (EIO) becomes SQLITE_CORRUPT. Here it stays an error of the system.
// - A log that was cut is continued behind a gap, where nothing is found later. Here the write fails.
// - The index of the log is used in memory even if its file was cut, which ends the process. See csqlite_check_index.
//
// One kind does more: it reads only what is in memory, for threads that must not wait.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // O_TMPFILE
#endif
#include "csqlite.h"

#include <cfilesystem.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A file of the layer, with the memory of SQLite's own file behind it.
typedef struct layer_file {
    sqlite3_file base;
    sqlite3_file *file;
    // Its path, which SQLite keeps while it is open.
    const char *name;
    // Where it is read without waiting; -1 while reads may wait.
    int descriptor;
    int owns_descriptor;
    // Whether it was opened for writing.
    int is_writable;
    // Whether it is a write-ahead log.
    int is_log;
    // Of a database in write-ahead mode: where the first part of the index is mapped, and the bytes of all parts.
    volatile unsigned char *index;
    int64_t index_bytes;
} layer_file;

static sqlite3_vfs layers[csqlite_layer_kinds];
static int is_registered;

static sqlite3_file *below(sqlite3_file *file) { return ((layer_file *)file)->file; }

static int layer_close(sqlite3_file *file) {
    layer_file *self = (layer_file *)file;
    if (self->owns_descriptor) close(self->descriptor);
    self->owns_descriptor = 0;
    self->descriptor = -1;
    return self->file->pMethods->xClose(self->file);
}

static int layer_read(sqlite3_file *file, void *target, int count, sqlite3_int64 offset) {
    layer_file *self = (layer_file *)file;
    if (self->descriptor < 0) {
        int code = self->file->pMethods->xRead(self->file, target, count, offset);
        // What SQLite makes of EIO, ENXIO and ERANGE. It would end as SQLITE_CORRUPT.
        return code == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : code;
    }
    int64_t got = cfilesystem_read_resident(self->descriptor, target, (size_t)count, offset);
    if (got == count) return SQLITE_OK;
    if (got < 0) return SQLITE_IOERR_BLOCKED;
    // SQLite relies on the zeros (https://www.sqlite.org/c3ref/io_methods.html).
    memset((char *)target + got, 0, (size_t)(count - got));
    return SQLITE_IOERR_SHORT_READ;
}

static int layer_size(sqlite3_file *file, sqlite3_int64 *size) {
    return below(file)->pMethods->xFileSize(below(file), size);
}

// Each frame of a log has a header of 24 bytes before its page (https://www.sqlite.org/fileformat2.html, 4.1).
enum { frame_header_bytes = 24 };

static int layer_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    if (((layer_file *)file)->is_log && count == frame_header_bytes) {
        // A log has no gaps. If a frame lies behind the end of the file, another program has cut the log. The frame
        // would be lost: SQLite reads a log up to the first frame that is not valid (4.2 there).
        sqlite3_int64 size = 0;
        int code = layer_size(file, &size);
        if (code != SQLITE_OK) return code;
        if (size < offset) return SQLITE_IOERR_SHORT_READ;
    }
    return below(file)->pMethods->xWrite(below(file), bytes, count, offset);
}

static int layer_truncate(sqlite3_file *file, sqlite3_int64 size) {
    return below(file)->pMethods->xTruncate(below(file), size);
}

static int layer_sync(sqlite3_file *file, int flags) { return below(file)->pMethods->xSync(below(file), flags); }

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

// Whether SQLite has hidden why a file could not be created: it opens such a file again for reading, without creating
// it, and returns the error of that, which is ENOENT.
static int hides_error(int code) { return (code & 0xFF) == SQLITE_CANTOPEN && errno == ENOENT; }

// Why no file can be created beside another one now; ENOENT if the system does not tell.
static int creation_error(const char *name) {
    const char *slash = name ? strrchr(name, '/') : NULL;
    size_t count = slash ? (size_t)(slash - name) + 1 : 0;
    char directory[4096];
    if (!count || count >= sizeof directory) return ENOENT;
    memcpy(directory, name, count);
    directory[count] = 0;
#ifdef O_TMPFILE
    // Such a file has no name, and is gone once it is closed.
    int file = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) return errno == EOPNOTSUPP || errno == EISDIR ? ENOENT : errno;
    close(file);
#endif
    return ENOENT;
}

static int layer_map_index(sqlite3_file *file, int region, int size, int extends, void volatile **address) {
    layer_file *self = (layer_file *)file;
    // A file system without locks has no shared index.
    if (!below(file)->pMethods->xShmMap) return SQLITE_IOERR_SHMMAP;
    int code = below(file)->pMethods->xShmMap(below(file), region, size, extends, address);
    // What was missing for a moment, such as a descriptor, is not missing at the second attempt.
    if (hides_error(code)) code = below(file)->pMethods->xShmMap(below(file), region, size, extends, address);
    if (hides_error(code)) errno = creation_error(self->name);
    // The index was opened for reading, because once it could not be opened for writing. It stays so until all
    // connections of the process to this file are closed.
    int is_read_only = code == SQLITE_READONLY || code == SQLITE_READONLY_CANTINIT;
    if (is_read_only && self->is_writable) return SQLITE_CANTOPEN;
    if (*address && region == 0) self->index = *address;
    if (*address && (int64_t)size * (region + 1) > self->index_bytes) self->index_bytes = (int64_t)size * (region + 1);
    return code;
}

static int layer_lock_index(sqlite3_file *file, int offset, int count, int flags) {
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}

static void layer_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }

static int layer_unmap_index(sqlite3_file *file, int deletes) {
    ((layer_file *)file)->index = NULL;
    ((layer_file *)file)->index_bytes = 0;
    return below(file)->pMethods->xShmUnmap(below(file), deletes);
}

static int layer_fetch(sqlite3_file *file, sqlite3_int64 offset, int count, void **page) {
    return below(file)->pMethods->xFetch(below(file), offset, count, page);
}

static int layer_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *page) {
    return below(file)->pMethods->xUnfetch(below(file), offset, page);
}

// A mapped page that is not in memory would be waited for, so the layer for reading only what is in memory has version
// 2, which is without xFetch.
#define LAYER_METHODS(VERSION) {                                                                                       \
    .iVersion = VERSION,                                                                                               \
    .xClose = layer_close,                                                                                             \
    .xRead = layer_read,                                                                                               \
    .xWrite = layer_write,                                                                                             \
    .xTruncate = layer_truncate,                                                                                       \
    .xSync = layer_sync,                                                                                               \
    .xFileSize = layer_size,                                                                                           \
    .xLock = layer_lock,                                                                                               \
    .xUnlock = layer_unlock,                                                                                           \
    .xCheckReservedLock = layer_check_lock,                                                                            \
    .xFileControl = layer_control,                                                                                     \
    .xSectorSize = layer_sector,                                                                                       \
    .xDeviceCharacteristics = layer_device,                                                                            \
    .xShmMap = layer_map_index,                                                                                        \
    .xShmLock = layer_lock_index,                                                                                      \
    .xShmBarrier = layer_barrier,                                                                                      \
    .xShmUnmap = layer_unmap_index,                                                                                    \
    .xFetch = layer_fetch,                                                                                             \
    .xUnfetch = layer_unfetch,                                                                                        \
}

static const sqlite3_io_methods layer_methods = LAYER_METHODS(2);
static const sqlite3_io_methods mapping_methods = LAYER_METHODS(3);

// The layer of a file that is open, by the name that SQLite has given to its log.
static layer_file *database_of_log(const char *log);

static int layer_open(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    sqlite3_vfs *system_vfs = vfs->pAppData;
    layer_file *self = (layer_file *)file;
    self->base.pMethods = NULL;
    self->file = (sqlite3_file *)(self + 1);
    self->name = name;
    self->descriptor = -1;
    self->owns_descriptor = 0;
    self->is_writable = 0;
    self->is_log = (flags & SQLITE_OPEN_WAL) != 0;
    self->index = NULL;
    self->index_bytes = 0;
    memset(self->file, 0, (size_t)system_vfs->szOsFile);
    int opened = flags;
    int code = system_vfs->xOpen(system_vfs, name, self->file, flags, &opened);
    if ((flags & SQLITE_OPEN_CREATE) && hides_error(code)) {
        // What was missing for a moment, such as a descriptor, is not missing at the second attempt.
        memset(self->file, 0, (size_t)system_vfs->szOsFile);
        opened = flags;
        code = system_vfs->xOpen(system_vfs, name, self->file, flags, &opened);
        if (hides_error(code)) errno = creation_error(name);
    }
    if (out_flags) *out_flags = opened;
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_READWRITE) && (opened & SQLITE_OPEN_READONLY)) {
        // SQLite also opens the log of a database for writing that is only read.
        layer_file *database = flags & SQLITE_OPEN_WAL ? database_of_log(name) : NULL;
        if (!database || database->is_writable) {
            self->file->pMethods->xClose(self->file);
            // The error of the first attempt is lost.
            return access(name, W_OK) != 0 && (errno == EACCES || errno == EROFS) ? SQLITE_PERM : SQLITE_CANTOPEN;
        }
    }
    self->is_writable = (opened & SQLITE_OPEN_READWRITE) != 0;
    // With methods it is closed, also if it could not be opened.
    if (!self->file->pMethods) return code;
    int maps = vfs != &layers[csqlite_resident_layer] && self->file->pMethods->iVersion >= 3;
    self->base.pMethods = maps ? &mapping_methods : &layer_methods;
    return code;
}

// SQLite tries again at once, and gives up after a limited number of times.
static int resident_sleep(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    return microseconds;
}

static void register_layers(void) {
    static const struct { const char *name, *system; } names[csqlite_layer_kinds] = {
        [csqlite_plain_layer] = {"vitrine", "unix"},
        [csqlite_unlocked_layer] = {"vitrine-unlocked", "unix-none"},
        [csqlite_resident_layer] = {"vitrine-resident", "unix"},
    };
    if (sqlite3_initialize() != SQLITE_OK) return;
    for (int kind = 0; kind < csqlite_layer_kinds; kind++) {
        sqlite3_vfs *found = sqlite3_vfs_find(names[kind].system);
        if (!found) return;
        layers[kind] = *found;
        layers[kind].pNext = NULL;
        layers[kind].pAppData = found;
        layers[kind].zName = names[kind].name;
        layers[kind].szOsFile = (int)sizeof(layer_file) + found->szOsFile;
        layers[kind].xOpen = layer_open;
        if (kind == csqlite_resident_layer) layers[kind].xSleep = resident_sleep;
        if (sqlite3_vfs_register(&layers[kind], 0) != SQLITE_OK) return;
    }
    is_registered = 1;
}

static pthread_once_t registration = PTHREAD_ONCE_INIT;

const char *csqlite_layer_name(csqlite_layer_kind kind) {
#ifndef __linux__
    // Elsewhere SQLite's own choice of a file system also chooses how files are locked.
    if (kind == csqlite_unlocked_layer) return "unix-none";
    if (kind != csqlite_resident_layer) return NULL;
#endif
    pthread_once(&registration, register_layers);
    if (is_registered) return layers[kind].zName;
    return kind == csqlite_unlocked_layer ? "unix-none" : NULL;
}

static int is_layer(const sqlite3_file *file) {
    return file && (file->pMethods == &layer_methods || file->pMethods == &mapping_methods);
}

static layer_file *database_of_log(const char *log) {
    sqlite3_file *file = log ? sqlite3_database_file_object(log) : NULL;
    return is_layer(file) ? (layer_file *)file : NULL;
}

static layer_file *layer_of(sqlite3 *connection, int operation) {
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(connection, "main", operation, &file) != SQLITE_OK) return NULL;
    return is_layer(file) ? (layer_file *)file : NULL;
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

// The header of the index: two copies of 48 bytes and 40 bytes about checkpoints and readers. A copy has the size of a
// page at 14 and the number of frames in the log at 16; the number of frames that were moved stands at 96
// (https://www.sqlite.org/walformat.html, 2.1).
enum { index_header_bytes = 136, header_copy_bytes = 48, page_size_at = 14, frame_count_at = 16, moved_count_at = 96 };
enum { log_header_bytes = 32 };

// Without a valid header, SQLite makes the index anew from the log at the next transaction.
static void invalidate(layer_file *database) {
    memset((void *)database->index, 0, index_header_bytes);
    __sync_synchronize();
}

csqlite_file_state csqlite_check_index(sqlite3 *connection) {
    layer_file *database = layer_of(connection, SQLITE_FCNTL_FILE_POINTER);
    if (!database || !database->index || !database->is_writable) return csqlite_files_intact;
    const char *name = sqlite3_db_filename(connection, "main");
    const char *log = name ? sqlite3_filename_wal(name) : NULL;
    size_t count = log ? strlen(log) : 0;
    char path[4096];
    if (count < 4 || count >= sizeof path) return csqlite_files_intact;
    memcpy(path, log, count + 1);
    memcpy(path + count - 3, "shm", 3);
    struct stat status;
    if (stat(path, &status) != 0 || status.st_size >= database->index_bytes) return csqlite_files_intact;
    // By its path: closing any descriptor of the file would give up the locks of all connections (fcntl(2)). The parts
    // that were cut are zeros then, and no longer missing.
    if (truncate(path, database->index_bytes) != 0) return csqlite_files_unusable;
    invalidate(database);
    return csqlite_files_mended;
}

csqlite_file_state csqlite_check_log(sqlite3 *connection) {
    layer_file *database = layer_of(connection, SQLITE_FCNTL_FILE_POINTER);
    const char *name = sqlite3_db_filename(connection, "main");
    if (!database || !database->index || !database->is_writable || !name) return csqlite_files_intact;
    unsigned char header[index_header_bytes], again[header_copy_bytes];
    memcpy(header, (const void *)database->index, sizeof header);
    uint16_t page_size;
    uint32_t frames, moved;
    memcpy(&page_size, header + page_size_at, sizeof page_size);
    memcpy(&frames, header + frame_count_at, sizeof frames);
    memcpy(&moved, header + moved_count_at, sizeof moved);
    if (frames == 0 || memcmp(header, header + header_copy_bytes, header_copy_bytes) != 0) return csqlite_files_intact;
    const char *log = sqlite3_filename_wal(name);
    struct stat status;
    int is_missing = stat(log, &status) != 0;
    if (is_missing && errno != ENOENT) return csqlite_files_intact;
    // 65536 is stored as 1 (https://www.sqlite.org/walformat.html, 2.1).
    int64_t frame_bytes = frame_header_bytes + (page_size == 1 ? 65536 : page_size);
    int64_t needed = log_header_bytes + frames * frame_bytes;
    if (!is_missing && status.st_size >= needed) return csqlite_files_intact;
    // The index is changed before a log is shortened.
    memcpy(again, (const void *)database->index, sizeof again);
    if (memcmp(header, again, sizeof again) != 0) return csqlite_files_intact;
    if (is_missing) return csqlite_log_missing;
    // The database has the state after the frames that were moved. Fewer frames in the log would take parts of it back.
    int64_t left = status.st_size > log_header_bytes ? (status.st_size - log_header_bytes) / frame_bytes : 0;
    if (left < moved && truncate(log, 0) != 0) return csqlite_files_unusable;
    invalidate(database);
    return csqlite_files_mended;
}

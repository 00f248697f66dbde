// What of SQLite's interface Swift cannot call: its destructor constants and its variadic functions.
#ifndef CSQLITE_H
#define CSQLITE_H

#if !__has_include(<sqlite3.h>)
#error "sqlite3.h is missing. Install libsqlite3-dev (Debian and Ubuntu), sqlite-devel (Fedora) or sqlite (brew)."
#endif
#include <sqlite3.h>
#include <stdint.h>

/// Binds a blob that stays where it is until the statement is reset.
int csqlite_bind_blob_static(sqlite3_stmt *statement, int index, const void *bytes, int64_t count);

/// Binds text or a blob that SQLite copies.
int csqlite_bind_text_copy(sqlite3_stmt *statement, int index, const char *text, int64_t count);
int csqlite_bind_blob_copy(sqlite3_stmt *statement, int index, const void *bytes, int64_t count);

/// Turns off what no database of this project uses and a hostile file could: triggers and views in the schema that
/// call functions, more than one attached database.
int csqlite_harden(sqlite3 *connection);

/// Lets the log be when the connection closes, although it is the last one.
int csqlite_keep_log(sqlite3 *connection);

/// The name of the file system layer (https://www.sqlite.org/vfs.html) for connections of which
/// ``csqlite_stop_waiting`` is called; null where it cannot be made.
const char *csqlite_resident_vfs(void);

/// The name of the file system layer for connections of which ``csqlite_gather_log`` is called; null where it cannot be
/// made, and on other systems than Linux.
const char *csqlite_gathering_vfs(void);

/// From now on, the pages that a transaction adds to the write-ahead log are written together, by as few calls as
/// possible, before the transaction becomes visible to others.
int csqlite_gather_log(sqlite3 *connection);

/// From now on, reads of this connection return SQLITE_IOERR_BLOCKED where the disk would have to be waited for, and
/// nothing sleeps until another connection has given up a lock.
///
/// `descriptor` is one of the database's file. It is not closed: closing any descriptor of the file would give up the
/// locks of all connections of the process (fcntl(2)).
int csqlite_stop_waiting(sqlite3 *connection, int descriptor);

#endif

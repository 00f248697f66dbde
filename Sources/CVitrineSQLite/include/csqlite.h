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

/// The kinds of the layer over SQLite's file system (https://www.sqlite.org/vfs.html). All of them fail to open a file
/// for reading that was to be written, and tell failed reads from damage.
typedef enum {
    csqlite_plain_layer,
    /// Without locks.
    csqlite_unlocked_layer,
    /// For connections of which ``csqlite_stop_waiting`` is called.
    csqlite_resident_layer,
    csqlite_layer_kinds
} csqlite_layer_kind;

/// The name of a layer; null for SQLite's own file system where the layer cannot be made. Other systems than Linux have
/// no layer but the resident one.
const char *csqlite_layer_name(csqlite_layer_kind kind);

/// What was found about the files beside an open database.
typedef enum {
    csqlite_files_intact,
    /// Another program has cut a file. It is usable again; changes may be lost.
    csqlite_files_mended,
    /// Another program has cut a file. The connection must be closed.
    csqlite_files_unusable,
    /// The log was deleted. The connection still has it; it can be moved into the database.
    csqlite_log_missing
} csqlite_file_state;

/// Checks the index of the log. Called before each use of a connection that shares it: reading a part that was cut off
/// would end the process (SIGBUS). Takes one call of the system.
csqlite_file_state csqlite_check_index(sqlite3 *connection);

/// Checks that the log has all that the index tells of. Called before changes: what is written behind a gap is lost. The
/// index was checked before.
csqlite_file_state csqlite_check_log(sqlite3 *connection);

/// From now on, reads of this connection return SQLITE_IOERR_BLOCKED where the disk would have to be waited for, and
/// nothing sleeps until another connection has given up a lock.
///
/// `descriptor` is one of the database's file. It is not closed: closing any descriptor of the file would give up the
/// locks of all connections of the process (fcntl(2)).
int csqlite_stop_waiting(sqlite3 *connection, int descriptor);

#endif

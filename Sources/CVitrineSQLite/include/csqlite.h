// What of SQLite's interface Swift cannot call: its destructor constants and its variadic functions.
#ifndef CSQLITE_H
#define CSQLITE_H

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


#endif

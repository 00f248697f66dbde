#include "csqlite.h"

int csqlite_bind_blob_static(sqlite3_stmt *statement, int index, const void *bytes, int64_t count) {
    return sqlite3_bind_blob64(statement, index, bytes, (sqlite3_uint64)count, SQLITE_STATIC);
}

int csqlite_bind_text_copy(sqlite3_stmt *statement, int index, const char *text, int64_t count) {
    return sqlite3_bind_text64(statement, index, text, (sqlite3_uint64)count, SQLITE_TRANSIENT, SQLITE_UTF8);
}

int csqlite_bind_blob_copy(sqlite3_stmt *statement, int index, const void *bytes, int64_t count) {
    return sqlite3_bind_blob64(statement, index, bytes, (sqlite3_uint64)count, SQLITE_TRANSIENT);
}

int csqlite_harden(sqlite3 *connection) {
    int code = sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
    if (code != SQLITE_OK) return code;
    code = sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
    if (code != SQLITE_OK) return code;
    // One, which VACUUM takes for itself.
    sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 1);
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}

int csqlite_keep_log(sqlite3 *connection) {
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

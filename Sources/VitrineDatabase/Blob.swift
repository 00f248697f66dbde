import CVitrineSQLite

/// One column of one table, read straight into memory of the caller's: no copy is made on the way, which a statement's
/// column would (https://www.sqlite.org/c3ref/blob_open.html).
///
/// It is part of a read transaction from its first ``open(row:)`` until ``close()``.
package final class Blob {
    private let connection: Connection
    private let table: String
    private let column: String
    private var handle: OpaquePointer?

    /// Nothing is opened yet.
    package init(_ database: Database, table: String, column: String) {
        connection = database.connection
        self.table = table
        self.column = column
    }

    deinit {
        sqlite3_blob_close(handle)
    }

    /// Goes to a row.
    ///
    /// - Returns: How many bytes it has; nil if there is no such row or nothing that has bytes in it.
    package func open(row: Int64) throws(DatabaseError) -> Int? {
        let code = handle.map { sqlite3_blob_reopen($0, row) }
            ?? sqlite3_blob_open(connection.handle, "main", table, column, row, 0, &handle)
        guard code == SQLITE_OK, let handle else {
            close()
            if code == SQLITE_ERROR { return nil }
            throw connection.error(code: code)
        }
        return Int(sqlite3_blob_bytes(handle))
    }

    /// Reads as many bytes as the memory has, from the beginning.
    package func read(into target: UnsafeMutableRawBufferPointer) throws(DatabaseError) {
        guard let base = target.baseAddress, !target.isEmpty else { return }
        let code = sqlite3_blob_read(handle, base, Int32(clamping: target.count), 0)
        guard code == SQLITE_OK else {
            let error = connection.error(code: code)
            close()
            throw error
        }
    }

    /// Ends its part in the transaction.
    package func close() {
        sqlite3_blob_close(handle)
        handle = nil
    }
}

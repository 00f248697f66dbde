import CVitrineSQLite
package import VitrineCore

/// A prepared statement. Parameters count from 1, columns from 0, as in SQLite.
///
/// Binding a parameter ends the run before it. A value that cannot be bound (no such parameter, more bytes than SQLite
/// takes) makes the next ``step()`` throw.
package final class Statement {
    private let handle: OpaquePointer
    private let connection: Connection
    private var isRunning = false
    private var bindFailure = SQLITE_OK

    init(_ sql: String, connection: Connection) throws(DatabaseError) {
        var handle: OpaquePointer?
        var rest = 0
        let code = sql.withCString { text in
            var tail: UnsafePointer<CChar>?
            let code = sqlite3_prepare_v3(
                connection.handle, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, &tail)
            while let byte = tail?.pointee, byte != 0 {
                if byte > 0x20, byte != 0x3B { rest += 1 }
                tail = tail?.successor()
            }
            return code
        }
        guard code == SQLITE_OK else { throw connection.error(code: code, sql: sql) }
        guard let handle, rest == 0 else {
            sqlite3_finalize(handle)
            throw DatabaseError(
                code: SQLITE_MISUSE, message: "not exactly one statement", path: connection.path, sql: sql)
        }
        self.handle = handle
        self.connection = connection
    }

    deinit {
        sqlite3_finalize(handle)
    }

    // MARK: Running

    /// Goes to the next row.
    ///
    /// - Returns: false after the last one; the statement is then ready to be run again.
    /// - Throws: ``DatabaseError``; the statement is then ready to be run again.
    package func step() throws(DatabaseError) -> Bool {
        guard bindFailure == SQLITE_OK else {
            defer { bindFailure = SQLITE_OK }
            throw connection.error(code: bindFailure, sql: String(cString: sqlite3_sql(handle)))
        }
        switch sqlite3_step(handle) {
        case SQLITE_ROW:
            isRunning = true
            return true
        case SQLITE_DONE:
            reset()
            return false
        case let code:
            let error = connection.error(code: code, sql: String(cString: sqlite3_sql(handle)))
            reset()
            throw error
        }
    }

    /// Runs a statement to its end, ignoring its rows.
    package func run() throws(DatabaseError) {
        while try step() {}
    }

    /// Ends a run before its last row, so that its locks are released.
    package func reset() {
        sqlite3_reset(handle)
        isRunning = false
    }

    // MARK: Parameters

    /// Binds a number.
    package func bind(_ value: Int64, at index: Int32) {
        endRun()
        check(sqlite3_bind_int64(handle, index, value))
    }

    /// Binds a number.
    package func bind(_ value: Int, at index: Int32) { bind(Int64(value), at: index) }

    /// Binds a number. SQLite has no NaN: it becomes NULL.
    package func bind(_ value: Double, at index: Int32) {
        endRun()
        check(sqlite3_bind_double(handle, index, value))
    }

    /// Binds NULL.
    package func bindNull(at index: Int32) {
        endRun()
        check(sqlite3_bind_null(handle, index))
    }

    /// Binds a number, or NULL for nil.
    package func bind(_ value: Int64?, at index: Int32) {
        if let value { bind(value, at: index) } else { bindNull(at: index) }
    }

    /// Binds a copy of the text, including text behind a NUL.
    package func bind(_ text: String, at index: Int32) {
        endRun()
        var text = text
        let code = text.withUTF8 { bytes in
            // Without an address SQLite would bind NULL.
            guard let base = bytes.baseAddress else { return csqlite_bind_text_copy(handle, index, "", 0) }
            return base.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
                csqlite_bind_text_copy(handle, index, $0, Int64(bytes.count))
            }
        }
        check(code)
    }

    /// Binds a copy of the bytes.
    package func bind(_ bytes: [UInt8], at index: Int32) {
        endRun()
        check(
            bytes.withUnsafeBytes { bytes in
                guard let base = bytes.baseAddress, !bytes.isEmpty else {
                    return sqlite3_bind_zeroblob(handle, index, 0)
                }
                return csqlite_bind_blob_copy(handle, index, base, Int64(bytes.count))
            })
    }

    /// Runs a body while bytes are bound without being copied; they are unbound afterwards.
    package func binding<Result>(
        _ bytes: [UInt8], at index: Int32, _ body: () throws(DatabaseError) -> Result
    ) throws(DatabaseError) -> Result {
        endRun()
        let result = bytes.withUnsafeBytes { bytes -> Swift.Result<Result, DatabaseError> in
            if let base = bytes.baseAddress, !bytes.isEmpty {
                check(csqlite_bind_blob_static(handle, index, base, Int64(bytes.count)))
            } else {
                check(sqlite3_bind_zeroblob(handle, index, 0))
            }
            defer {
                reset()
                sqlite3_bind_null(handle, index)
            }
            return Swift.Result(catching: body)
        }
        return try result.get()
    }

    /// SQLite refuses to bind during a run, and would go on with the old value.
    private func endRun() {
        if isRunning { reset() }
    }

    private func check(_ code: Int32) {
        if code != SQLITE_OK, bindFailure == SQLITE_OK { bindFailure = code }
    }

    // MARK: Columns

    /// Whether the column is NULL.
    package func isNull(at column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
    /// The number; 0 for NULL.
    package func integer(at column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
    /// The number; 0 for NULL.
    package func double(at column: Int32) -> Double { sqlite3_column_double(handle, column) }

    /// The number, or nil for NULL.
    package func integerIfPresent(at column: Int32) -> Int64? { isNull(at: column) ? nil : integer(at: column) }

    /// The text; ill-formed bytes are repaired, NULL is empty.
    package func text(at column: Int32) -> String {
        guard let text = sqlite3_column_text(handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
    }

    /// A copy of the bytes; NULL is empty.
    package func bytes(at column: Int32) -> [UInt8] {
        withBytes(at: column) { [UInt8]($0) }
    }

    /// Lends a text's or blob's bytes, which are gone after the body and after the next step.
    package func withBytes<Result, Failure: Error>(
        at column: Int32, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let start = sqlite3_column_blob(handle, column)
        let count = Int(sqlite3_column_bytes(handle, column))
        return try body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }
}

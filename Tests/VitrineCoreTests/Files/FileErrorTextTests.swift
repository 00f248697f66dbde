import Foundation
import TestSupport
import Testing
import VitrineCore

struct FileErrorTextTests {
    private let path = "/data/lake.jpg"

    @Test func fileErrorsDescribeThemselvesInOneLine() {
        let errors: [FileError] = [
            .notFound(path: path), .alreadyExists(path: path), .notPermitted(path: path, code: EACCES),
            .notPermitted(path: path, code: EROFS), .noSpace(path: path), .tooLarge(path: path, limit: 10),
            .cancelled(path: path), .untrusted(path: path, reason: "it belongs to another user."),
            .notDurable(path: path, code: EIO), .system(operation: "rename", path: path, code: EIO),
        ]
        for error in errors {
            #expect(ErrorTextRule.violations(of: error, input: path).isEmpty)
            #expect(error.description.contains(path))
            #expect(!error.textWithoutInput.contains(path) && !error.textWithoutInput.hasSuffix("."))
        }
    }

    @Test func fileErrorsSayWhatToDo() {
        #expect(FileError.noSpace(path: path).description.hasSuffix("Free some space, or choose another disk."))
        #expect(FileError.notPermitted(path: path, code: EACCES).description.contains("Check the owner and the mode"))
        #expect(FileError.notPermitted(path: path, code: EROFS).description.contains("Choose a place"))
    }

    @Test func databaseErrorsDescribeThemselvesInOneLine() {
        let errors = [
            DatabaseError(reason: .full, code: 13, message: "database or disk is full", path: path, sql: nil),
            DatabaseError(reason: .other, code: 0, message: "it has no rows.", path: path, sql: nil),
            DatabaseError(reason: .other, code: 1, message: "no such table", path: path, sql: "SELECT a\n  FROM t"),
        ]
        for error in errors { #expect(ErrorTextRule.violations(of: error, input: path).isEmpty) }
        #expect(errors[2].description == "\(path): no such table (SQLite 1) in \"SELECT a FROM t\".")
    }
}

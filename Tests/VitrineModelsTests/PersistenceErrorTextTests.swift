import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineModels

@Test func persistenceErrorsDescribeThemselvesAlikeInOneLine() {
    let path = "/data/notes"
    let database = DatabaseError(reason: .full, code: 13, message: "disk is full", path: path, sql: nil)
    var errors: [PersistenceError] = [
        .truncated(offset: 3), .malformed("a length is negative."), .foreign, .damaged, .unsupportedFormat(9),
        .tooDeep(limit: 100), .unknownSchema(fingerprint: 7), .unregisteredType("Note"), .duplicateName("Note"),
        .invalidSchema(type: "Note", reason: "two properties are stored as text"),
        .ambiguousNames(type: "Note", reason: "two properties had the name"),
        .typeMismatch(path: "note.title", expected: "String", found: "Int"), .missingValue(path: "note.title"),
        .cycleThroughRequiredProperty(type: "Note"), .newerThanCode(type: "Note", stored: "2", code: "1"),
        .changedWithoutVersion(type: "Note", version: "1", differences: ["title is new", "text is gone"]),
        .migrationFailed(type: "Note", from: "1", to: "2", reason: "Failure()"),
        .migrationAbandoned(type: "Note", from: "1"), .invalidName(path, reason: "it has a slash"),
        .database(database), .file(.noSpace(path: path)), .notAStore(path: path, reason: "it has other tables"),
        .wrongKey(path: path, reason: "its key differs"), .sealing("The key has 3 bytes instead of 32."),
    ]
    errors += errors.map { .unreadable(key: "first", group: "notes", $0) }
    for error in errors { #expect(ErrorTextRule.violations(of: error, input: path).isEmpty) }
    let failed = PersistenceError.migrationFailed(type: "Note", from: "1", to: "2", reason: "Failure()")
    #expect(failed.description.contains("Failure(). Change the migration step."))
}

import Foundation
import Testing
import VitrineModels

@Test func persistenceErrorsDescribeThemselvesAlikeInOneLine() {
    let errors: [PersistenceError] = [
        .truncated(offset: 3), .malformed("a length is negative"), .foreign, .damaged, .unsupportedFormat(9),
        .tooDeep(limit: 100), .unregisteredType("Note"), .duplicateName("Note"),
        .typeMismatch(path: "note.title", expected: "String", found: "Int"), .missingValue(path: "note.title"),
        .cycleThroughRequiredProperty(type: "Note"),
    ]
    for error in errors {
        #expect(error.localizedDescription == error.description)
        #expect("\(error)" == error.description)
        #expect(!error.description.contains("\n"))
        #expect(error.description.hasSuffix("."))
    }
}

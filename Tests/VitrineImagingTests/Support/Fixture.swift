import Foundation
import TestSupport
import Testing

/// Every test of this module needs it.
typealias Corpus = TestSupport.Corpus

/// Small files made for this project, carried by the repository.
enum Fixture {
    static func path(_ name: String) throws -> String {
        let folder = try #require(Bundle.module.url(forResource: "Fixtures", withExtension: nil))
        return folder.appending(path: name).path
    }

    static func bytes(_ name: String) throws -> [UInt8] {
        try [UInt8](Data(contentsOf: URL(filePath: path(name))))
    }
}

// The transfers of this module that the downloads use.
public import Foundation
public import VitrineCore

public struct HTTPHeaders: Sendable, Hashable, Sequence {
    public struct Field: Sendable, Hashable { public let name: String, value: String }
    public init() {}
    public subscript(name: String) -> String? { nil }
    public mutating func append(_ name: String, _ value: String) {}
    public func makeIterator() -> IndexingIterator<[Field]> { fatalError("a declaration") }
}

public struct HTTPResponseHead: Sendable, Hashable {
    public var status: Int
    public var headers: HTTPHeaders
    public init(status: Int, headers: HTTPHeaders, url: URL) { (self.status, self.headers) = (status, headers) }
    package init(_ response: HTTPURLResponse, at url: URL) { fatalError("a declaration") }
}

public enum NetworkError: Error {
    case truncated(url: String, received: ByteCount, reason: String)
    case invalidResponse(url: String, reason: String)
    case status(url: String, HTTPResponseHead)
    case file(FileError)
    case busy(url: String, path: String)
    case cancelled(url: String)

    package init(_ error: any Error, url: String, received: Int?) { fatalError("a declaration") }
}

package struct SourceURL {
    package static func withoutCredentials(_ text: String) -> String { text }
}

package final class PartialFile: Sendable {
    package static func openWhole(_ path: String, identity: String) throws(FileError) -> PartialFile? { nil }
}

public final class TransferProgress: Sendable {
    public struct Step: Sendable, Hashable {
        public var received = 0
        public var total: Int?
    }
    public init() {}
    public var current: Step { Step() }
    public func update(_ change: @Sendable (inout Step) -> Void) {}
}

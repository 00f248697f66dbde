/// Where in a store an object is: a path of names, as `mail/inbox`. The empty path is the root group.
///
/// Groups come with their first object. What is removed with a group are its objects and the groups below it.
public struct ObjectGroup: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The names with slashes between them.
    public let path: String

    /// The group that is in no other.
    public static let root: ObjectGroup = ""

    /// - Parameter path: Names with slashes between them. An empty name makes it invalid, which is reported when it is
    ///   used.
    public init(_ path: String) { self.path = path }

    public init(stringLiteral path: String) { self.init(path) }

    public var description: String { path }

    func check() throws(PersistenceError) {
        guard !path.isEmpty else { return }
        if path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).contains(where: \.isEmpty) {
            throw .invalidName(path, reason: "a name between its slashes is empty")
        }
    }

    /// Whether another group is this one or below it.
    func contains(_ other: ObjectGroup) -> Bool {
        path.isEmpty || other.path == path || other.path.hasPrefix(path + "/")
    }
}

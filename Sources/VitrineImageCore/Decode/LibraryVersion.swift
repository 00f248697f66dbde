/// A library of the system, and its version.
package struct LibraryVersion: Sendable, Hashable, Codable {
    package let name: String
    /// nil if the library is missing.
    package let version: String?
    /// The reason why the library cannot be used; nil if it can.
    package var problem: String?

    package init(_ name: String, version: String?, problem: String? = nil) {
        self.name = name
        self.version = version
        self.problem = problem
    }
}

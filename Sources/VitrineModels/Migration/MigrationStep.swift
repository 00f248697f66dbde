/// One step of a type's history: what data that was stored before a version needs to become as that version wants it.
///
/// Its function is called on any thread, several at once: a static function of a `@MainActor` type must be
/// `nonisolated`.
public struct MigrationStep: Sendable {
    /// The version whose form the data has afterwards.
    public let version: SchemaVersion
    let apply: @Sendable (MigrationData) throws -> Void

    /// A step.
    ///
    /// - Parameters:
    ///   - version: The version whose form the data has afterwards. Data of that version or later is left alone.
    ///   - apply: Changes the data. What it throws is reported, and the stored bytes stay as they are.
    public init(to version: SchemaVersion, _ apply: @escaping @Sendable (MigrationData) throws -> Void) {
        self.version = version
        self.apply = apply
    }

    /// A hook, as the ancestor had it: one function for all older versions, which is told the version the data is of.
    ///
    /// ```swift
    /// @Migration(to: "2.0") static func migrate(_ old: MigrationData, from version: SchemaVersion) -> Bool {
    ///     if version < "1.1" { old.rename("title", to: "string") }
    ///     return true
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - version: The type's present version.
    ///   - hook: Changes the data; false gives data of that version up, which is then reported as
    ///     ``PersistenceError/migrationGivenUp(type:from:)`` and stays until ``ObjectStore/forget(_:version:)``.
    public init(
        to version: SchemaVersion, _ hook: @escaping @Sendable (MigrationData, SchemaVersion) throws -> Bool
    ) {
        self.init(to: version) { (data: MigrationData) in
            guard try hook(data, data.version) else { throw MigrationAbandoned() }
        }
    }
}

/// Thrown by a migration step to give data of an older version up: it is reported by
/// ``PersistenceError/migrationGivenUp(type:from:)`` and stays as it is.
public struct MigrationAbandoned: Error {
    public init() {}
}

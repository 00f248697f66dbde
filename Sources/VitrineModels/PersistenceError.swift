public import VitrineCore

/// Why a value could not be stored, restored or brought up to date. Stored bytes are as they were.
///
/// ``code`` is the same in every release, ``hint`` says what to do.
public enum PersistenceError: Error, Sendable, Equatable {
    // MARK: Bytes

    /// The bytes end too early, at this offset.
    case truncated(offset: Int)
    /// The bytes cannot be what they should be.
    case malformed(String)
    /// The bytes do not begin as stored values do.
    case foreign
    /// The bytes were changed since they were written: their checksum differs.
    case damaged
    /// The bytes are in a format that only a later release knows.
    case unsupportedFormat(Int)
    /// Something is nested deeper than this many levels.
    case tooDeep(limit: Int)

    // MARK: Types

    /// There is no record of the schema the bytes were written under.
    case unknownSchema(fingerprint: UInt64)
    /// No type of this name is known to the program.
    case unregisteredType(String)
    /// Two types have this name.
    case duplicateName(String)
    /// A value has another type than expected. The path leads from the outermost object to it.
    case typeMismatch(path: String, expected: String, found: String)
    /// A property has no stored value, no default, and is not optional.
    case missingValue(path: String)
    /// An object refers to itself by properties that it cannot be made without.
    case cycleThroughRequiredProperty(type: String)

    // MARK: Versions

    /// A later version of the program wrote this.
    case newerThanCode(type: String, stored: SchemaVersion, code: SchemaVersion)
    /// A type was changed, by more than added properties, without a new version.
    case changedWithoutVersion(type: String, version: SchemaVersion, differences: [String])
    /// A migration step threw.
    case migrationFailed(type: String, from: SchemaVersion, to: SchemaVersion, reason: String)
    /// A migration step gave this version up by ``MigrationAbandoned``.
    case migrationGivenUp(type: String, from: SchemaVersion)

    // MARK: Stores

    /// A key or the path of a group cannot be one.
    case invalidName(String, reason: String)
    /// The database could not be read or written.
    case database(DatabaseError)
    /// A file beside the store's own could not be written.
    case file(FileError)
    /// The file is a database, but no object store, or one of a later release.
    case notAStore(path: String, reason: String)
    /// The store is encrypted in another way than the configuration says: with another key, another method, or not.
    case wrongKey(path: String, reason: String)
    /// The cipher could not seal a value.
    case sealing(String)
    /// A stored value could not be read, for this reason.
    indirect case unreadable(key: String, group: String, PersistenceError)
}

extension PersistenceError {
    /// The failure's name, the same in every release: for logs, scripts and measurements. For
    /// ``unreadable(key:group:_:)`` it is that of the reason.
    public var code: String {
        switch self {
        case .truncated: "truncated"
        case .malformed: "malformed"
        case .foreign: "foreign"
        case .damaged: "damaged"
        case .unsupportedFormat: "unsupported-format"
        case .tooDeep: "too-deep"
        case .unknownSchema: "unknown-schema"
        case .unregisteredType: "unregistered-type"
        case .duplicateName: "duplicate-name"
        case .typeMismatch: "type-mismatch"
        case .missingValue: "missing-value"
        case .cycleThroughRequiredProperty: "required-cycle"
        case .newerThanCode: "newer-than-code"
        case .changedWithoutVersion: "changed-without-version"
        case .migrationFailed: "migration-failed"
        case .migrationGivenUp: "migration-given-up"
        case .invalidName: "invalid-name"
        case .database: "database"
        case .file: "file"
        case .notAStore: "not-a-store"
        case .wrongKey: "wrong-key"
        case .sealing: "sealing"
        case .unreadable(_, _, let reason): reason.code
        }
    }

    /// What to do about it; nil where nothing helps but another copy of the bytes.
    public var hint: String? {
        switch self {
        case .truncated, .malformed, .foreign, .damaged, .database, .file, .invalidName, .notAStore, .sealing: nil
        case .unsupportedFormat, .newerThanCode: "Use the program's newer version."
        case .tooDeep: "Keep long chains of objects in an array."
        case .unknownSchema: "Open the store the bytes came from, which has the record."
        case .unregisteredType(let name): "Register \(name), or migrate what was stored as it to another type."
        case .duplicateName(let name): "Give one of the types named \(name) another persistent name."
        case .typeMismatch, .missingValue: "Add a migration step, a default value or an optional type."
        case .cycleThroughRequiredProperty: "Make one property of the cycle optional or weak."
        case .changedWithoutVersion(let type, let version, _):
            "Give \(type) a version after \(version), with a migration step if properties need one."
        case .migrationFailed, .migrationGivenUp: "Change the migration step; what is stored was not touched."
        case .wrongKey: "Open the store with the key it was made with."
        case .unreadable(_, _, let reason): reason.hint
        }
    }

    /// The same error, seen from one level further out.
    ///
    /// Paths are put together while an error travels outwards, so that success pays nothing for them.
    func below(_ component: String) -> PersistenceError {
        switch self {
        case .typeMismatch(let path, let expected, let found):
            .typeMismatch(path: component + path, expected: expected, found: found)
        case .missingValue(let path): .missingValue(path: component + path)
        default: self
        }
    }
}

extension PersistenceError: CustomStringConvertible {
    public var description: String {
        guard let hint else { return reason }
        return "\(reason) \(hint)"
    }

    private var reason: String {
        switch self {
        case .truncated(let offset): "The stored value ends too early, at byte \(offset)."
        case .malformed(let what): "The stored value is malformed: \(what)."
        case .foreign: "The bytes are no stored value."
        case .damaged: "The stored value was damaged: its checksum differs."
        case .unsupportedFormat(let format): "The value is stored in format \(format), which is not known."
        case .tooDeep(let limit): "The value is nested deeper than \(limit) levels."
        case .unknownSchema(let fingerprint):
            "There is no record of the schema \(Schema.name(of: fingerprint)) the value was written under."
        case .unregisteredType(let name): "The type \(name) is not known."
        case .duplicateName(let name): "Two types are named \(name)."
        case .typeMismatch(let path, let expected, let found): "\(path) should be \(expected) and is \(found)."
        case .missingValue(let path): "\(path) has no stored value and no default."
        case .cycleThroughRequiredProperty(let type): "An object of type \(type) needs itself to be made."
        case .newerThanCode(let type, let stored, let code):
            "\(type) was stored by version \(stored); the program has version \(code)."
        case .changedWithoutVersion(let type, let version, let differences):
            "\(type) \(version) was changed without a new version: \(differences.joined(separator: ", "))."
        case .migrationFailed(let type, let from, let to, let reason):
            "Migrating \(type) from \(from) failed in the step to \(to): \(reason)"
        case .migrationGivenUp(let type, let from): "\(type) of version \(from) was given up by its migration."
        case .invalidName(let name, let reason): "\"\(name)\" cannot be a name: \(reason)."
        case .database(let error): error.description
        case .file(let error): error.description
        case .notAStore(let path, let reason): "\(path) is no object store: \(reason)."
        case .wrongKey(let path, let reason): "\(path) cannot be opened: \(reason)."
        case .sealing(let reason): "The value could not be encrypted: \(reason)."
        case .unreadable(let key, let group, let error):
            "\"\(key)\"\(group.isEmpty ? "" : " in \(group)") cannot be read: \(error.reason)"
        }
    }
}

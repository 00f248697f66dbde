public import VitrineCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An error in storing, reading or migrating a value. Stored bytes stay unchanged.
///
/// The description names the reason and, if there is one, a remedy.
public enum PersistenceError: Error, Sendable, Equatable {
    // MARK: Bytes

    /// The bytes end too early, at this offset.
    case truncated(offset: Int)
    /// The bytes are not valid, for this reason.
    case malformed(String)
    /// The bytes are not an encoded value.
    case foreign
    /// The checksum differs: the bytes were changed after they were written.
    case damaged
    /// The format of the bytes is of a later release of Vitrine.
    case unsupportedFormat(Int)
    /// Structs and enums are nested deeper than this number of levels. Links between objects do not count.
    case tooDeep(limit: Int)

    // MARK: Types

    /// The schema of the bytes is unknown.
    case unknownSchema(fingerprint: UInt64)
    /// No type with this name is registered.
    case unregisteredType(String)
    /// Two types have this name.
    case duplicateName(String)
    /// The description of a type cannot be used, for this reason.
    case invalidSchema(type: String, reason: String)
    /// The earlier names of a type's properties do not tell where a stored value belongs, for this reason.
    case ambiguousNames(type: String, reason: String)
    /// A value has another type than expected. The path leads from the outermost object to the value.
    case typeMismatch(path: String, expected: String, found: String)
    /// A property has no stored value and no default value, and is not optional.
    case missingValue(path: String)
    /// An object refers to itself through required properties.
    case cycleThroughRequiredProperty(type: String)

    // MARK: Versions

    /// A later version of the program wrote the value.
    case newerThanCode(type: String, stored: SchemaVersion, code: SchemaVersion)
    /// A type was changed without a new version, and the change needs one.
    case changedWithoutVersion(type: String, version: SchemaVersion, differences: [String])
    /// A migration step threw an error.
    case migrationFailed(type: String, from: SchemaVersion, to: SchemaVersion, reason: String)
    /// A migration step abandoned data of this version.
    case migrationAbandoned(type: String, from: SchemaVersion)

    // MARK: Stores

    /// A key or the path of a group is not valid.
    case invalidName(String, reason: String)
    /// The database could not be read or written.
    case database(DatabaseError)
    /// A file could not be written.
    case file(FileError)
    /// The file is not an object store, or one of a later release.
    case notAStore(path: String, reason: String)
    /// The cipher of the configuration is not the cipher of the store.
    case wrongKey(path: String, reason: String)
    /// The cipher could not encrypt a value.
    case sealing(String)
    /// A stored value could not be read, for this reason.
    indirect case unreadable(key: String, group: String, PersistenceError)
}

extension PersistenceError {
    /// The name of the error for logs, scripts and metrics. It is the same in every release.
    ///
    /// For ``unreadable(key:group:_:)`` it is the code of the reason.
    package var code: String {
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
        case .invalidSchema: "invalid-schema"
        case .ambiguousNames: "ambiguous-names"
        case .typeMismatch: "type-mismatch"
        case .missingValue: "missing-value"
        case .cycleThroughRequiredProperty: "required-cycle"
        case .newerThanCode: "newer-than-code"
        case .changedWithoutVersion: "changed-without-version"
        case .migrationFailed: "migration-failed"
        case .migrationAbandoned: "migration-abandoned"
        case .invalidName: "invalid-name"
        case .database: "database"
        case .file: "file"
        case .notAStore: "not-a-store"
        case .wrongKey: "wrong-key"
        case .sealing: "sealing"
        case .unreadable(_, _, let reason): reason.code
        }
    }

    /// A suggestion for a remedy; nil if only another copy of the bytes helps.
    package var hint: String? {
        switch self {
        case .truncated, .malformed, .foreign, .damaged, .database, .file, .invalidName, .notAStore, .sealing: nil
        case .unsupportedFormat, .newerThanCode: "Use the newer version of the program."
        case .tooDeep: "Use classes for values that are nested so deep, or raise the limit of the coder."
        case .unknownSchema: "Add the schema to the registry, or open the store that contains it."
        case .unregisteredType(let name): "Register \(name), or migrate its data to another type."
        case .duplicateName(let name): "Give one of the types named \(name) another persistent name."
        case .invalidSchema(let type, _): "Describe \(type) with its own properties, each under a name of its own."
        case .ambiguousNames: "Rename the properties in a migration step."
        case .typeMismatch, .missingValue: "Add a migration step, a default value or an optional type."
        case .cycleThroughRequiredProperty: "Make one property of the cycle optional or weak."
        case .changedWithoutVersion(let type, let version, _):
            "Give \(type) a version after \(version), with a migration step if properties need one."
        case .migrationFailed, .migrationAbandoned: "Change the migration step. The stored data is unchanged."
        case .wrongKey: "Open the store with its original cipher and key."
        case .unreadable(_, _, let reason): reason.hint
        }
    }

    /// Returns the error with a component before its path.
    ///
    /// Paths are built while an error propagates, so they cost nothing on success.
    func below(_ component: String) -> PersistenceError {
        switch self {
        case .typeMismatch(let path, let expected, let found):
            .typeMismatch(path: component + path, expected: expected, found: found)
        case .missingValue(let path): .missingValue(path: component + path)
        default: self
        }
    }
}

extension PersistenceError: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// The reason, and a remedy if there is one.
    public var description: String {
        ErrorText.sentence(reason, advice: hint)
    }

    /// The reason as a sentence. Those of other errors in it may lack a full stop, or have one already.
    private var reason: String { ErrorText.sentence(text) }

    private var text: String {
        switch self {
        case .truncated(let offset): "The stored value ends too early, at byte \(offset)."
        case .malformed(let reason): "The stored value is malformed: \(reason)."
        case .foreign: "The bytes are not a stored value."
        case .damaged: "The stored value is damaged: its checksum differs."
        case .unsupportedFormat(let format): "The value is stored in the unknown format \(format)."
        case .tooDeep(let limit): "The value is nested deeper than \(limit) levels."
        case .unknownSchema(let fingerprint):
            "The schema \(Schema.name(of: fingerprint)) of the value is unknown."
        case .unregisteredType(let name): "The type \(name) is not registered."
        case .duplicateName(let name): "Two types are named \(name)."
        case .invalidSchema(let type, let reason): "The schema of \(type) is not valid: \(reason)."
        case .ambiguousNames(let type, let reason): "The earlier names in \(type) are ambiguous: \(reason)."
        case .typeMismatch(let path, let expected, let found): "\(path) should be \(expected) and is \(found)."
        case .missingValue(let path): "\(path) has no stored value and no default value."
        case .cycleThroughRequiredProperty(let type):
            "An object of type \(type) refers to itself through required properties."
        case .newerThanCode(let type, let stored, let code):
            "\(type) was stored by version \(stored); the program has version \(code)."
        case .changedWithoutVersion(let type, let version, let differences):
            "\(type) \(version) was changed without a new version: \(differences.joined(separator: ", "))."
        case .migrationFailed(let type, let from, let to, let reason):
            "Migrating \(type) from \(from) failed in the step to \(to): \(reason)"
        case .migrationAbandoned(let type, let from): "A migration step abandoned \(type) of version \(from)."
        case .invalidName(let name, let reason): "\"\(name)\" is not a valid name: \(reason)."
        case .database(let error): error.description
        case .file(let error): error.description
        case .notAStore(let path, let reason): "\(path) is not an object store: \(reason)."
        case .wrongKey(let path, let reason): "\(path) cannot be opened: \(reason)."
        case .sealing(let reason): "The value could not be encrypted: \(reason)."
        case .unreadable(let key, let group, let error):
            "\"\(key)\"\(group.isEmpty ? "" : " in \(group)") cannot be read: \(error.reason)"
        }
    }
}

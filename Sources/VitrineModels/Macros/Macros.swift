#if Macros
/// Makes a struct, class or enum persistent: its stored properties are found, recorded with their names and types, and
/// written and read in that order.
///
/// ```swift
/// @Persistable(version: "1.2.0", extensible: true) class Foo {
///     var string: String
///     var places: [Place] = []
///     weak var parent: Foo?
///     @Persisted("lat", renamedFrom: ["y"]) var latitude = 0.0
///     @Transient var thumbnail: Data? = nil
///
///     init(string: String) { self.string = string }
///
///     @Migration(to: "1.1.0") static func rename(_ old: MigrationData) { old.rename("title", to: "string") }
/// }
/// @Persistable class SubFoo: Foo { var tags: Set<String> = [] }
/// ```
///
/// - Classes inherit the stored properties of a superclass that is `@Persistable` as well. A class whose properties all
///   have values, and that declares no initializer, keeps `init()`.
/// - Properties of classes with a default value, or that are optional, are read after the object exists, so that they
///   may lead back to it.
/// - Needs the package's trait `Macros`, which builds swift-syntax; without it types conform by hand, see
///   ``PersistentRecord``.
///
/// - Parameters:
///   - version: The version of the stored form, compared number by number. Default "1".
///   - name: The name it is stored under. Default: the type's, with its arguments if it is generic.
///   - renamedFrom: Names it was stored under before.
///   - extensible: Whether properties declared in extensions by ``ExtensionProperty(_:category:)`` are stored. For
///     structs and root classes; subclasses inherit it. Default false.
@attached(
    member, conformances: PersistentObject,
    names: named(persistentName), named(describe), named(persistProperties), named(init), named(init(restoring:)),
    named(_restoreLateProperties), named(persistentEquals), named(persistentHash), named(persistentExtensions),
    named(==), named(hash))
@attached(extension, conformances: PersistentObject, PersistentRecord, names: named(init(restoring:)))
public macro Persistable(
    version: SchemaVersion = "1", name: String? = nil, renamedFrom: [String] = [], extensible: Bool = false
) = #externalMacro(module: "VitrineModelsMacros", type: "PersistableMacro")

/// Stores a property under a name of its own, or recognises it by names it was stored under before.
///
/// - Parameters:
///   - name: What it is stored under. Default: its own name.
///   - renamedFrom: Names it was stored under before, which need no migration step.
@attached(peer)
public macro Persisted(_ name: String? = nil, renamedFrom: [String] = []) =
    #externalMacro(module: "VitrineModelsMacros", type: "MarkerMacro")

/// Keeps a property out of what is stored, compared, copied and described. It needs a default value.
@attached(peer)
public macro Transient() = #externalMacro(module: "VitrineModelsMacros", type: "MarkerMacro")

/// Marks a static function that brings data stored before a version to the form of that version; see
/// ``MigrationData``. Steps run in the order of their versions, on any thread: in a `@MainActor` type the function has
/// to be `nonisolated`.
///
/// - Parameter version: Not after the type's own.
@attached(peer)
public macro Migration(to version: SchemaVersion) =
    #externalMacro(module: "VitrineModelsMacros", type: "MarkerMacro")

/// Stores a property that is declared in an extension of a type that is `@Persistable(extensible: true)`, or of a
/// subclass.
///
/// ```swift
/// extension Foo { @ExtensionProperty(category: "Sync") var etag: String? }
/// ```
///
/// - Parameters:
///   - name: What it is stored under. Default: its own name.
///   - category: Sets it apart from properties of the same name in other extensions. Default none.
@attached(accessor)
@attached(peer, names: prefixed(_extensionKey_))
public macro ExtensionProperty(_ name: String? = nil, category: String = "") =
    #externalMacro(module: "VitrineModelsMacros", type: "ExtensionPropertyMacro")
#endif

#if Macros
/// Generates the conformance of a struct, class or enum to ``PersistentRecord`` or ``PersistentObject``.
///
/// The generated code records the names and types of all stored properties, and writes and reads them in order of
/// declaration.
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
/// - Subclasses of a `@Persistable` class are `@Persistable` too. They inherit its stored properties. A class that
///   declares no initializer, and whose properties all have values, keeps `init()`.
/// - Optional properties of a class and those with a default value are read after the object exists. They can refer
///   back to the object.
/// - The macro requires the package's trait `Macros`, which builds swift-syntax. Without the trait, make
///   a class a ``KeyPathObject``, and write the conformance of a struct or enum by hand; see ``PersistentRecord``.
///
/// - Parameters:
///   - version: The version of the stored form. Versions are compared number by number. Default "1".
///   - name: The name under which the type is stored. Default: the name of the type, with its generic arguments.
///   - renamedFrom: Earlier names of the type.
///   - extensible: Whether properties that extensions declare by ``ExtensionProperty(_:category:)`` are stored. Only
///     for structs and root classes; subclasses inherit it. Default false.
@attached(
    member, conformances: PersistentObject,
    names: named(persistentName), named(describe), named(persistProperties), named(init), named(init(restoring:)),
    named(_restoreLateProperties), named(persistentEquals), named(persistentHash), named(persistentExtensions),
    named(==), named(hash))
@attached(extension, conformances: PersistentObject, PersistentRecord, names: named(init(restoring:)))
public macro Persistable(
    version: SchemaVersion = "1", name: String? = nil, renamedFrom: [String] = [], extensible: Bool = false
) = #externalMacro(module: "VitrineModelsMacros", type: "PersistableMacro")

/// Stores a property under another name, or reads it from earlier names.
///
/// - Parameters:
///   - name: The name under which the property is stored. Default: the name of the property.
///   - renamedFrom: Earlier names of the property. They need no migration step.
@attached(peer)
public macro Persisted(_ name: String? = nil, renamedFrom: [String] = []) =
    #externalMacro(module: "VitrineModelsMacros", type: "MarkerMacro")

/// Excludes a property from storage, comparison, copies and descriptions. The property needs a default value.
@attached(peer)
public macro Transient() = #externalMacro(module: "VitrineModelsMacros", type: "MarkerMacro")

/// Marks a static function as the step that migrates older data to a version; see ``MigrationData``.
///
/// Steps run in the order of their versions, on any thread. In a `@MainActor` type, declare the function `nonisolated`.
///
/// - Parameter version: The version of the data after the step, at most the version of the type.
@attached(peer)
public macro Migration(to version: SchemaVersion) =
    #externalMacro(module: "VitrineModelsMacros", type: "MarkerMacro")

/// Stores a property that an extension declares.
///
/// The extended type is `@Persistable(extensible: true)`, or a subclass of such a class.
///
/// ```swift
/// extension Foo { @ExtensionProperty(category: "Sync") var etag: String? }
/// ```
///
/// - Parameters:
///   - name: The name under which the property is stored. Default: the name of the property.
///   - category: Distinguishes properties of the same name in different extensions. Default empty.
@attached(accessor)
@attached(peer, names: prefixed(_extensionKey_))
public macro ExtensionProperty(_ name: String? = nil, category: String = "") =
    #externalMacro(module: "VitrineModelsMacros", type: "ExtensionPropertyMacro")
#endif

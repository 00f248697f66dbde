final class Foo { var persistentExtensions = ExtensionStorage() }

#if Macros
import SwiftCompilerPlugin
import SwiftSyntaxMacros

/// The compiler plug-in that expands the macros of VitrineModels.
@main
struct ModelsPlugin: CompilerPlugin {
    let providingMacros: [any Macro.Type] = [PersistableMacro.self, ExtensionPropertyMacro.self, MarkerMacro.self]
}
#else
/// Without the trait `Macros` the plug-in is empty, and swift-syntax is not built.
@main
struct ModelsPlugin {
    static func main() {}
}
#endif

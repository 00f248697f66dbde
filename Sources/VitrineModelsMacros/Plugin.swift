#if Macros
import SwiftCompilerPlugin
import SwiftSyntaxMacros

/// What the compiler runs to expand the macros of VitrineModels.
@main
struct ModelsPlugin: CompilerPlugin {
    let providingMacros: [any Macro.Type] = [PersistableMacro.self, ExtensionPropertyMacro.self, MarkerMacro.self]
}
#else
/// Without the trait `Macros` there is nothing to expand, and swift-syntax is not built.
@main
struct ModelsPlugin {
    static func main() {}
}
#endif

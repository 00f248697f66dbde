/// Returns the path of `name` in `directory`.
package func path(_ directory: String, _ name: String) -> String {
    directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)"
}

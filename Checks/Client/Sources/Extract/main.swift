// Writes each Swift snippet of the documentation as a function of its own: Extract ROOT OUTPUT PRELUDES
// So it does with each row of the tables of Migrating.md, whose right cells are code.
import Foundation

struct Snippet {
    var file: String
    /// The line after the fence, from 1.
    var line: Int
    /// The text of a comment `<!-- prelude: … -->` in front of the fence.
    var prelude = ""
    var lines: [String] = []
    /// Whether the symbol that the comment belongs to is not public.
    var isInternal = false

    /// Why it is not compiled; nil if it is.
    var reason: String? {
        let text = lines.joined(separator: "\n")
        if prelude.hasPrefix("none") { return String(prelude.dropFirst(4)).trimmingCharacters(in: .whitespaces) }
        if text.hasPrefix("// swift-tools-version") { return "a manifest" }
        if text.hasPrefix(".package(") || text.hasPrefix(".product(") { return "part of a manifest" }
        if file.contains("/Apple/") || text.contains("UIApplication") { return "for Apple's platforms" }
        if module == "VitrineDatabase" { return "documents a module that is no product" }
        if module == "VitrineModelsEncryption" { return "needs the trait Encryption" }
        if text.contains("@Persist") || text.contains("@Migration") || text.contains("@ExtensionProperty") {
            return "needs the trait Macros"
        }
        if isInternal { return "documents a symbol that is not public" }
        let code = lines.map { $0.components(separatedBy: "//")[0] }.joined(separator: "\n")
        return code.replacing(/"[^"\n]*"/, with: "").contains("…") ? "is abridged" : nil
    }

    /// The module it documents, which names its context.
    var module: String {
        let parts = file.split(separator: "/")
        guard parts.count > 2, parts[0] == "Sources" else { return "Vitrine" }
        return Self.partsOfImaging.contains(String(parts[1])) ? "VitrineImaging" : String(parts[1])
    }

    /// Modules of the product VitrineImaging, which imports them for its clients.
    private static let partsOfImaging: Set = [
        "VitrineImageCore", "VitrineWorkers", "VitrineJPEG", "VitrinePNG", "VitrineHEIF", "VitrineJXL", "VitrineRaster",
        "VitrineSVG", "VitrineContainers",
    ]
}

/// The code in the right cell of a row; nil for a head, and for a cell about Apple's platforms.
func code(ofRow row: String) -> [String]? {
    guard let cell = row.components(separatedBy: " | ").last, !cell.contains("on Apple's platforms") else { return nil }
    let spans = cell.matches(of: /`([^`]+)`/).map { String($0.1) }
    // The name of a type or protocol is not a statement.
    return spans.isEmpty
        ? nil
        : spans.enumerated().map { $1.wholeMatch(of: /[A-Z]\w*/) == nil ? $1 : "typealias Name\($0) = \($1)" }
}

/// The snippets of a file: in Markdown, or in the comments of Swift.
func snippets(of file: String, in root: URL) throws -> [Snippet] {
    let isSwift = file.hasSuffix(".swift")
    var found: [Snippet] = []
    var open: Snippet?
    var prelude = ""
    // The first snippet of the comment that is being read.
    var first = 0
    let text = try String(contentsOf: root.appending(path: file), encoding: .utf8)
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
        var line = String(line)
        if isSwift {
            let trimmed = line.drop { $0 == " " }
            guard trimmed.hasPrefix("///") else {
                // Attributes stand between a comment and its declaration.
                if trimmed.hasPrefix("@"), !trimmed.contains(" func ") { continue }
                let isInternal = !trimmed.contains(/^(public|open|extension|case|@)/)
                for index in first..<found.count { found[index].isInternal = isInternal }
                (open, prelude, first) = (nil, "", found.count)
                continue
            }
            line = String(trimmed.dropFirst(trimmed.hasPrefix("/// ") ? 4 : 3))
        }
        let trimmed = line.trimmingCharacters(in: .whitespaces)
        if trimmed.hasPrefix("```") {
            if let snippet = open { found.append(snippet) }
            open = open == nil && trimmed == "```swift" ? Snippet(file: file, line: index + 2, prelude: prelude) : nil
            prelude = ""
        } else if open != nil {
            open?.lines.append(line)
        } else if file.hasSuffix("/Migrating.md"), trimmed.hasPrefix("| ") {
            guard let lines = code(ofRow: trimmed) else { continue }
            found.append(Snippet(file: file, line: index + 1, lines: lines))
        } else if trimmed.hasPrefix("<!-- prelude:"), trimmed.hasSuffix("-->") {
            prelude = trimmed.dropFirst(13).dropLast(3).trimmingCharacters(in: .whitespaces)
        } else if !trimmed.isEmpty {
            prelude = ""
        }
    }
    return found
}

/// A file that declares a snippet as a function. What a function cannot hold stands beside it: imports and extensions.
func source(of snippet: Snippet, number: Int, preludes: URL) -> String {
    var imports: Set = ["import Foundation", "import Vitrine", "import VitrineWebPages"]
    // The tables say once that they need it.
    if snippet.module == "VitrineCompatibility" || snippet.file.hasSuffix("/Migrating.md") {
        imports.insert("import VitrineCompatibility")
    }
    var body: [String] = [], extensions: [String] = [], types: [String] = []
    let scope = "\(snippet.module)Context.Snippet\(number)"
    var isExtension = false
    for (index, line) in snippet.lines.enumerated() {
        let isOutside = isExtension || line.hasPrefix("import ") || line.hasPrefix("extension ")
        // An empty line stays, so that the numbers of the others are right.
        body.append(isOutside ? "" : line.hasPrefix("@main ") ? String(line.dropFirst(6)) : line)
        if line.hasPrefix("import ") {
            imports.insert(line.components(separatedBy: " //")[0].trimmingCharacters(in: .whitespaces))
        } else if line.hasPrefix("extension ") {
            let name = String(line.dropFirst(10).prefix { $0.isLetter || $0.isNumber })
            if let type = try? String(contentsOf: preludes.appending(path: name + ".swift"), encoding: .utf8) {
                types.append(type)
            }
            extensions.append("#sourceLocation(file: \"\(snippet.file)\", line: \(snippet.line + index))")
            extensions.append("extension \(scope).\(line.dropFirst(10))")
            isExtension = !line.hasSuffix("}")
        } else if isExtension {
            extensions.append(line)
            isExtension = line != "}"
        }
    }
    return """
        \(imports.sorted().joined(separator: "\n"))

        extension \(snippet.module)Context {
            enum Snippet\(number) {
        \(types.joined(separator: "\n"))
                @MainActor static func run() async throws {
                    \(snippet.prelude)
        #sourceLocation(file: "\(snippet.file)", line: \(snippet.line))
        \(body.joined(separator: "\n"))
        #sourceLocation()
                }
            }
        }
        \(extensions.joined(separator: "\n"))
        \(extensions.isEmpty ? "" : "#sourceLocation()")

        """
}

let arguments = CommandLine.arguments
guard arguments.count == 4 else {
    print("usage: Extract ROOT OUTPUT PRELUDES")
    exit(2)
}
let root = URL(filePath: arguments[1]), output = URL(filePath: arguments[2]), preludes = URL(filePath: arguments[3])
var files = ["README.md"]
for folder in ["Checks", "Documentation", "Examples", "Sources"] {
    let names = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
    while let name = names?.nextObject() as? String {
        let hasComments = folder == "Sources" && name.hasSuffix(".swift")
        if hasComments || name.hasSuffix(".md"), !name.contains(".build") { files.append(folder + "/" + name) }
    }
}
try? FileManager.default.removeItem(at: output)
try FileManager.default.createDirectory(at: output, withIntermediateDirectories: true)
var skipped: [String: [String]] = [:], count = 0
for snippet in try files.sorted().flatMap({ try snippets(of: $0, in: root) }) {
    if let reason = snippet.reason {
        skipped[reason, default: []].append("\(snippet.file):\(snippet.line)")
        continue
    }
    count += 1
    try source(of: snippet, number: count, preludes: preludes)
        .write(to: output.appending(path: "Snippet\(count).swift"), atomically: true, encoding: .utf8)
}
print("\(count) snippets are compiled")
for (reason, places) in skipped.sorted(by: { $0.key < $1.key }) {
    print("\(places.count) not: \(reason)")
    for place in places { print("    \(place)") }
}

/// Reads `user-dirs.dirs`, in which desktops record the user's own directories (user-dirs.dirs(5)).
package enum UserDirectories {
    /// The directory of a name such as `XDG_DOCUMENTS_DIR`; nil if the file does not say.
    ///
    /// A value is `"$HOME/…"` or `"/…"`, in double quotes, in which a backslash takes the next character as it is.
    /// Lines of any other form are skipped. Of several lines the last counts.
    package static func path(of name: String, in file: [UInt8], home: String) -> String? {
        var found: String?
        for line in file.split(separator: UInt8(ascii: "\n")) {
            let text = line.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            guard text.starts(with: (name + "=\"").utf8) else { continue }
            if let value = unquoted(text.dropFirst(name.utf8.count + 2)) {
                found = expanded(value, home: home) ?? found
            }
        }
        return found
    }

    private static func unquoted(_ bytes: ArraySlice<UInt8>) -> String? {
        var value: [UInt8] = []
        var rest = bytes.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "\""): return PathText.text(of: value)
            case UInt8(ascii: "\\"):
                guard let next = rest.next() else { return nil }
                value.append(next)
            default: value.append(byte)
            }
        }
        return nil
    }

    private static func expanded(_ value: String, home: String) -> String? {
        if value == "$HOME" || value == "$HOME/" { return home }
        if value.hasPrefix("$HOME/") { return FilePath.join(home, String(value.dropFirst(6))) }
        return FilePath.isAbsolute(value) ? value : nil
    }
}

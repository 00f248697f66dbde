/// The path of a group in a key-value or object store: the names of nested groups.
///
/// ```swift
/// let inbox: GroupPath = "mail.inbox"       // the same group as "mail/inbox"
/// inbox.appending("v1.2")                   // one component, although it contains a dot
/// ```
///
/// Names are compared by their bytes. No name is special: `..`, `/` in a component and NUL are ordinary names.
public struct GroupPath: Sendable, Hashable {
    private enum Root: String {
        case standard = "d", reserve = "r", named = "n"
    }

    private let root: Root
    /// The names in UTF-8. Comparing texts would also accept canonically equivalent names.
    private let names: [[UInt8]]

    /// The names from the outermost group to this one. For groups inside ``standard`` or ``reserve``, the names below
    /// it.
    package var components: [String] { names.map { String(decoding: $0, as: UTF8.self) } }

    private init(_ root: Root, _ components: [String]) {
        self.root = root
        names = components.map { Array($0.utf8) }
    }

    /// Creates a path from names separated by dots or slashes. Empty names are skipped; a text without any name is the
    /// ``standard`` group.
    public init(_ text: String) {
        self.init(components: text.split { $0 == "." || $0 == "/" }.map(String.init))
    }

    /// Creates a path from unescaped names. An empty list is the ``standard`` group.
    package init(components: [String]) {
        self.init(components.isEmpty ? .standard : .named, components)
    }

    /// The group of values that are stored without a group.
    public static let standard = GroupPath(.standard, [])

    /// The group that survives when all other groups are removed, or when another version of the program opens the
    /// store.
    public static let reserve = GroupPath(.reserve, [])

    /// Returns the path of a group inside this group.
    public func appending(_ name: String) -> GroupPath { GroupPath(root, components + [name]) }

    // MARK: Stored form

    /// The path as stored. Every name ends in `/`, so that the descendants of a group are one range of texts.
    package var storedText: String {
        components.reduce(root.rawValue + "/") { $0 + Self.escaped($1) + "/" }
    }

    /// The prefix of all stored paths of named groups.
    package static let storedRoot = Root.named.rawValue + "/"

    /// Returns the smallest text above all texts that begin with a stored path. In ASCII, `0` follows `/`.
    package static func upperBound(ofStored text: String) -> String { text.dropLast() + "0" }

    /// Returns the first name of the rest of a stored path, unescaped and as stored.
    package static func firstName(ofStored rest: Substring) -> (name: String, stored: Substring) {
        let stored = rest.prefix { $0 != "/" }
        return (unescaped(stored), stored)
    }

    /// The ``storedText`` without the root of named groups and the slash at its end: `a/b` for a named group, the empty
    /// text for ``standard``, `/r` for ``reserve``.
    package var path: String { self == .standard ? "" : String(prefix.dropLast()) }

    /// The text that begins the paths of the groups below this one.
    private var prefix: String {
        root == .named ? String(storedText.dropFirst(Self.storedRoot.count)) : "/" + storedText
    }

    /// Creates the group with a ``path``.
    package init(path: String) {
        let names = path.split(separator: "/", omittingEmptySubsequences: false)
        if names.count > 1, names[0].isEmpty {
            self.init(Root(rawValue: String(names[1])) ?? .standard, names.dropFirst(2).map(Self.unescaped))
        } else {
            self.init(components: path.isEmpty ? [] : names.map(Self.unescaped))
        }
    }

    /// The texts between which the paths of the groups below this one are.
    package var descendants: Range<String> {
        let prefix = prefix
        return prefix..<Self.upperBound(ofStored: prefix)
    }

    /// Returns whether another group is this group or below it.
    package func contains(_ other: GroupPath) -> Bool { root == other.root && other.names.starts(with: names) }

    private static func escaped(_ name: String) -> String {
        var bytes: [UInt8] = []
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "%"): bytes += Array("%25".utf8)
            case UInt8(ascii: "/"): bytes += Array("%2F".utf8)
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func unescaped(_ name: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = name.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            bytes.append(rest.prefix(2).elementsEqual("2F".utf8) ? UInt8(ascii: "/") : byte)
            rest = rest.dropFirst(2)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension GroupPath: ExpressibleByStringLiteral {
    /// Creates a path from names separated by dots or slashes.
    public init(stringLiteral value: String) { self.init(value) }
}

extension GroupPath: CustomStringConvertible {
    /// The names separated by slashes, after `(default)` or `(reserve)` for groups inside those.
    public var description: String {
        let names = components.joined(separator: "/")
        switch root {
        case .standard: return names.isEmpty ? "(default)" : "(default)/" + names
        case .reserve: return names.isEmpty ? "(reserve)" : "(reserve)/" + names
        case .named: return names
        }
    }
}

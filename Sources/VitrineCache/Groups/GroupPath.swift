/// Where in a ``KeyValueStore`` a value is: a group, possibly inside other groups (R4).
///
/// ```swift
/// let inbox: GroupPath = "mail.inbox"       // "mail/inbox" is the same
/// inbox.appending("v1.2")                   // one component, whatever it contains
/// ```
///
/// Names are compared by their bytes. No name is special: `..`, `/` in a component and NUL are names like others.
public struct GroupPath: Sendable {
    private enum Root: String {
        case standard = "d", reserve = "r", named = "n"
    }

    private let root: Root
    /// The names from the outermost group to this one; below the default or the reserve group, those inside it.
    public let components: [String]

    private init(_ root: Root, _ components: [String]) {
        self.root = root
        self.components = components
    }

    /// A group written with dots or slashes between its names. Empty names do not count; without any name it is
    /// the ``standard`` group.
    public init(_ text: String) {
        self.init(components: text.split { $0 == "." || $0 == "/" }.map(String.init))
    }

    /// A group by the names as they are. Without any name it is the ``standard`` group.
    public init(components: [String]) {
        self.init(components.isEmpty ? .standard : .named, components)
    }

    /// The group of values stored without one.
    public static let standard = GroupPath(.standard, [])

    /// The group that stays when everything else is removed or a new version of the program starts afresh (R49).
    public static let reserve = GroupPath(.reserve, [])

    /// A group inside this one.
    public func appending(_ name: String) -> GroupPath { GroupPath(root, components + [name]) }

    /// The path as it is stored: every name ends in `/`, so that what is below a group is one range of texts.
    var text: String {
        components.reduce(root.rawValue + "/") { $0 + Self.escaped($1) + "/" }
    }

    /// Below which all named groups are.
    static let namedRoot = Root.named.rawValue + "/"

    /// The first text behind all that begin with a stored path: `/` is followed by `0`.
    static func end(of text: String) -> String { text.dropLast() + "0" }

    /// The name that begins a rest of a stored path.
    static func firstName(_ rest: Substring) -> (name: String, stored: Substring) {
        let stored = rest.prefix { $0 != "/" }
        return (unescaped(stored), stored)
    }

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

extension GroupPath: Hashable {
    public static func == (one: GroupPath, other: GroupPath) -> Bool {
        one.text.utf8.elementsEqual(other.text.utf8)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(Array(text.utf8)) }
}

extension GroupPath: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) { self.init(value) }
}

extension GroupPath: CustomStringConvertible {
    /// The names with slashes between them, behind what kind of group it is.
    public var description: String {
        let names = components.joined(separator: "/")
        switch root {
        case .standard: return names.isEmpty ? "(default)" : "(default)/" + names
        case .reserve: return names.isEmpty ? "(reserve)" : "(reserve)/" + names
        case .named: return names
        }
    }
}

import VitrineCore

/// A request field that a stored response depends on according to `Vary` (RFC 9111, section 4.1).
struct SelectingField: Sendable, Hashable {
    /// The name, in lowercase.
    let name: String
    /// The normalized value; nil if the request had none. Credentials and long values are replaced by a digest.
    let value: String?

    /// More names than this are treated as `*`.
    static let limit = 64
    private static let longest = 96
    private static let credentials: Set<String> = ["authorization", "cookie", "proxy-authorization"]

    /// Returns the request fields that a response depends on; nil for `*`.
    static func all(of response: HTTPHeaders, in request: HTTPHeaders) -> [SelectingField]? {
        let names = Set(HTTPList.names(response.all("Vary")))
        guard !names.contains("*"), names.count <= limit else { return nil }
        return names.sorted().map { SelectingField($0, in: request) }
    }

    private init(_ name: String, in request: HTTPHeaders) {
        self.init(name: name, value: SelectingField.normalized(name, request))
    }

    init(name: String, value: String?) {
        self.name = name
        self.value = value
    }

    /// Returns whether a request has the same value.
    func matches(_ request: HTTPHeaders) -> Bool { SelectingField.normalized(name, request) == value }

    /// Returns the value of a request's field in a normalized form.
    private static func normalized(_ name: String, _ request: HTTPHeaders) -> String? {
        let lines = request.all(name)
        guard !lines.isEmpty else { return nil }
        let elements = lines.flatMap(HTTPList.elements)
        let text: String
        switch name {
        case "accept", "accept-encoding", "accept-language", "accept-charset":
            text = Set(elements.map { Preference($0).text }).sorted().joined(separator: ",")
        default:
            text = elements.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ",")
        }
        guard text.utf8.count > longest || credentials.contains(name) else { return text }
        return "sha256:" + Hexadecimal.text(SHA256Digest.digest(of: text))
    }
}

/// An element of an `Accept` field with its weight (RFC 9110, section 12.4.2).
struct Preference {
    /// The element in lowercase without weight and white space.
    let name: String
    /// The weight in thousandths.
    let weight: Int

    init(_ element: ArraySlice<UInt8>) {
        var parts = element.split(separator: 0x3B).map { HTTPList.lowercased(HTTPList.trim($0)) }
        var weight = 1000
        if let index = parts.firstIndex(where: { $0.hasPrefix("q=") }) {
            weight = Preference.thousandths(parts[index].utf8.dropFirst(2))
            parts.removeSubrange(index...)
        }
        name = parts.joined(separator: ";")
        self.weight = weight
    }

    var text: String { weight == 1000 ? name : "\(name);q=\(weight)" }

    /// Parses `0.5` as 500. Invalid weights are 1000.
    private static func thousandths(_ text: Substring.UTF8View) -> Int {
        let bytes = Array(text)
        guard let first = bytes.first?.decimalDigit, bytes.count <= 5 else { return 1000 }
        if bytes.count == 1 { return first == 0 ? 0 : 1000 }
        guard first == 0, bytes[1] == 0x2E else { return 1000 }
        var value = 0
        for index in 2..<5 {
            guard index < bytes.count else {
                value *= 10
                continue
            }
            guard let digit = bytes[index].decimalDigit else { return 1000 }
            value = value * 10 + Int(digit)
        }
        return value
    }
}

/// The number system of BlurHash: 83 characters that need no escaping in JSON, HTML or a shell.
enum Base83 {
    private static let alphabet = Array(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~".utf8)

    private static let values: [Int] = {
        var values = [Int](repeating: -1, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = value }
        return values
    }()

    /// Appends `value` with `count` digits, most significant first.
    static func append(_ value: Int, count: Int, to text: inout [UInt8]) {
        var place = 1
        for _ in 1..<count { place *= 83 }
        while place > 0 {
            text.append(alphabet[value / place % 83])
            place /= 83
        }
    }

    /// The value of each character.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` for other characters and for texts longer than any BlurHash.
    static func digits(_ text: String) throws(ImageError) -> [Int] {
        guard text.utf8.count <= 166 else { throw BlurHash.corrupt("has more than 166 characters") }
        let digits = text.utf8.map { values[Int($0)] }
        guard !digits.contains(-1) else { throw BlurHash.corrupt("has a character that is not of base 83") }
        return digits
    }

    /// The number some digits stand for.
    static func number(_ digits: ArraySlice<Int>) -> Int { digits.reduce(0) { $0 * 83 + $1 } }
}

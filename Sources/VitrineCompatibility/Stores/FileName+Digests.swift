public import VitrineCore

/// Names that earlier libraries gave to files.
extension FileName {
    /// Returns the MD5 of the key as 32 hexadecimal digits with the extension of the key, as earlier libraries do.
    ///
    /// Keys with the same MD5 can be made on purpose. For untrusted keys, use `name(for:)`.
    ///
    /// - Parameter key: The key.
    public static func md5Name(for key: String) -> String {
        md5(key) + dottedExtension(of: key)
    }

    /// Returns the MD5 of the text as 32 lower-case hexadecimal digits.
    ///
    /// - Parameter text: The text, which is hashed as UTF-8.
    public static func md5(_ text: String) -> String {
        Hexadecimal.text(MD5Digest.digest(of: text))
    }

    // MARK: Compact names

    private static let compactAlphabet = Array("eilotrmapdnsIcufkMShjTRxgC4013".utf8)

    /// Returns a name of eleven letters and digits, which hold 54 bits of the text's SHA-256.
    ///
    /// Among a million names, the probability of a collision is about 1 in 35,000. Names differ in case, so they are
    /// not for file systems that ignore it.
    ///
    /// - Parameter text: The text, which is hashed as UTF-8.
    public static func compact(_ text: String) -> String {
        // Byte `i` of the digest selects one of 30 characters. A byte above 239 would favour some of them: byte `i +
        // 11` replaces it, and `i + 22` that one. The last replacement counts whatever its value is.
        let digest = SHA256Digest.digest(of: text)
        let name = (0..<11).map { index -> UInt8 in
            var byte = digest[index]
            if byte > 239 { byte = digest[index + 11] }
            // The digest has 32 bytes: the last character has no third one.
            if byte > 239, index + 22 < digest.count { byte = digest[index + 22] }
            return compactAlphabet[Int(byte) % compactAlphabet.count]
        }
        return String(decoding: name, as: UTF8.self)
    }
}

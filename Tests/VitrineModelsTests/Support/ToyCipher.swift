import VitrineCore
import VitrineModels

/// A cipher that keeps no secret, but has all that a store needs of one: key and context matter, changes are noticed.
struct ToyCipher: ObjectEncryption {
    struct Failure: Error {}

    let key: UInt8
    var name = "toy"

    func seal(_ bytes: [UInt8], context: [UInt8]) throws -> [UInt8] {
        tag(bytes, context) + bytes.map { $0 ^ key }
    }

    func open(_ sealed: [UInt8], context: [UInt8]) throws -> [UInt8] {
        let bytes = sealed.dropFirst(32).map { $0 ^ key }
        guard sealed.count >= 32, tag(bytes, context) == Array(sealed.prefix(32)) else { throw Failure() }
        return bytes
    }

    private func tag(_ bytes: [UInt8], _ context: [UInt8]) -> [UInt8] {
        SHA256Digest.digest(of: [key] + SHA256Digest.digest(of: context) + bytes)
    }
}

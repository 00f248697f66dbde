import Foundation
import Testing
import VitrineModels
import VitrineModelsEncryption

/// The stored type.
private struct Place: PersistentRecord, Equatable {
    var name: String

    init(_ name: String) { self.name = name }

    static let persistentName = "Place"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        record.property("name", String.self)
    }
    func persistProperties(to writer: inout BinaryWriter) { writer.write(name) }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) { name = try reader.read() }
}

@Suite struct CipherTests {
    private static let key = EncryptionKey()
    private static let ciphers: [any ObjectEncryption] = [AESGCMCipher(key: key), ChaChaPolyCipher(key: key)]

    @Test(arguments: 0..<2) func sealedValuesDifferEachTimeAndOpen(index: Int) throws {
        let cipher = Self.ciphers[index]
        for size in [0, 1, 1000] {
            let bytes = [UInt8](repeating: 7, count: size)
            let sealed = try cipher.seal(bytes, context: [1, 2])
            #expect(sealed.count == size + 28)
            #expect(try cipher.seal(bytes, context: [1, 2]) != sealed)
            #expect(try cipher.open(sealed, context: [1, 2]) == bytes)
        }
    }

    @Test func errorsDescribeThemselvesInOneLine() {
        for error in [EncryptionError.keySize(3), .notAuthentic, .failed("the library failed."), .failed("no memory")] {
            #expect(error.localizedDescription == error.description && "\(error)" == error.description)
            #expect(error.description.hasSuffix(".") && !error.description.hasSuffix(".."))
        }
    }

    @Test(arguments: 0..<2) func otherKeysPlacesAndBytesAreNotAuthentic(index: Int) throws {
        let cipher = Self.ciphers[index]
        let other: any ObjectEncryption = index == 0 ? AESGCMCipher(key: .init()) : ChaChaPolyCipher(key: .init())
        let sealed = try cipher.seal([1, 2, 3], context: [1])
        #expect(throws: EncryptionError.notAuthentic) { try other.open(sealed, context: [1]) }
        #expect(throws: EncryptionError.notAuthentic) { try cipher.open(sealed, context: [2]) }
        #expect(throws: EncryptionError.notAuthentic) { try cipher.open([], context: [1]) }
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(throws: EncryptionError.notAuthentic) { try cipher.open(changed, context: [1]) }
            #expect(throws: EncryptionError.notAuthentic) {
                try cipher.open(Array(sealed.prefix(index)), context: [1])
            }
        }
    }

    @Test func ciphersOpenTheTestVectors() throws {
        // RFC 8439, 2.8.2, and test case 16 of McGrew and Viega, The Galois/Counter Mode of Operation (2005).
        let chacha = ChaChaPolyCipher(
            key: try EncryptionKey(bytes: bytes("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f")))
        let text =
            "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen "
            + "would be it."
        let sealed = bytes(
            """
            070000004041424344454647\
            d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6\
            3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36\
            92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
            3ff4def08e4b7a9de576d26586cec64b6116\
            1ae10b594f09e26a7e902ecbd0600691
            """)
        #expect(
            try chacha.open(sealed, context: bytes("50515253c0c1c2c3c4c5c6c7")) == Array(text.utf8))
        let aes = AESGCMCipher(
            key: try EncryptionKey(bytes: bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308")))
        let plain = """
            d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
            1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39
            """
        let box = bytes(
            """
            cafebabefacedbaddecaf888\
            522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
            8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662\
            76fc6ece0f4e1768cddf8853bb2d551b
            """)
        #expect(try aes.open(box, context: bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2")) == bytes(plain))
    }

    private func bytes(_ digits: String) -> [UInt8] {
        let digits = Array(digits)
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
    }

    @Test func keysHave32Bytes() throws {
        #expect(throws: EncryptionError.keySize(16)) { try EncryptionKey(bytes: [UInt8](repeating: 1, count: 16)) }
        #expect(EncryptionKey().bytes.count == 32)
        #expect(try EncryptionKey(bytes: Self.key.bytes).bytes == Self.key.bytes)
        #expect(EncryptionKey().bytes != EncryptionKey().bytes)
    }

    @Test(arguments: 0..<2) func storesKeepObjectsByThem(index: Int) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        func open(_ cipher: (any ObjectEncryption)?) throws -> ObjectStore {
            try ObjectStore(
                at: directory + "/a.sqlite",
                configuration: .init(coder: PersistentCoder(registry: TypeRegistry()), cipher: cipher))
        }
        let place = Place("a name that is not to be read")
        let store = try open(Self.ciphers[index])
        try await store.put(place, for: "k")
        #expect(try open(Self.ciphers[index]).object(Place.self, for: "k") == place)
        #expect(try await store.verify().isIntact)
        for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
            let bytes = try #require(FileManager.default.contents(atPath: directory + "/" + name))
            #expect(bytes.range(of: Data("not to be read".utf8)) == nil, "\(name)")
        }
        for wrong in [nil, Self.ciphers[1 - index], AESGCMCipher(key: .init()), ChaChaPolyCipher(key: .init())] {
            let error = #expect(throws: PersistenceError.self) { try open(wrong) }
            guard case .wrongKey = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }
}

import Foundation
import Testing
import VitrineModels

/// Bytes that promise more than they hold.
@Suite struct HostileBytesTests {
    @Test func hostileCountsAllocateNothing() throws {
        let coder = PersistentCoder(registry: TypeRegistry())
        let fingerprint = try coder.registry.schema(of: [UUID].self).fingerprint
        // A count of 2^63 − 1 with nothing behind it.
        let bytes: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]
        #expect(throws: PersistenceError.self) {
            try bytes.withUnsafeBytes { try coder.decode([UUID].self, fingerprint: fingerprint, body: $0) }
        }
    }
}

import Foundation
import VitrineImaging

/// A worker that has been taken over: greets as it should, and then tells lies. Which one stands in the request, in
/// place of the decoder's name or, for a document, of the parameters.
enum Liar {
    /// What its name says that its sandbox lacks.
    private static var sandbox: WorkerSandbox {
        let name = CommandLine.arguments[0]
        var sandbox = WorkerSandbox.complete
        if name.contains("without-seccomp") { sandbox.remove(.systemCalls) }
        if name.contains("without-landlock") { sandbox.remove(.files) }
        return sandbox
    }

    static func run() -> Never {
        // As a worker does that may not install its filter.
        if CommandLine.arguments[0].contains("forbidden") { exit(WorkerExit.notSandboxed.rawValue) }
        send(WorkerReply(id: 0, outcome: .pong(sandbox), memory: 0).encoded())
        while true {
            let packet = [UInt8](unsafeUninitializedCapacity: WorkerProtocol.maximumPacket) { buffer, count in
                count = max(0, recv(3, buffer.baseAddress, buffer.count, 0))
            }
            if let request = WorkerRequest(packet), request.operation == .ping {
                send(WorkerReply(id: request.id, outcome: .pong(sandbox), memory: 0).encoded())
            } else if let request = WorkerRequest(packet) {
                tell(request.decoder, id: request.id)
            } else if let request = DocumentRequest(packet) {
                tell(String(decoding: request.parameters, as: UTF8.self), id: request.id)
            } else {
                exit(1)
            }
        }
    }

    private static func tell(_ lie: String, id: UInt64) {
        let words = lie.split(separator: " ").map(String.init)
        let number = words.count > 1 ? Int(words[1]) ?? 0 : 0
        var shape = WorkerReply.DecodedShape(
            planes: [plane()], model: .rgb, alpha: .none, profile: .none, isPartial: false)
        func reply(_ outcome: WorkerReply.Outcome, memory: Int = 0) -> [UInt8] {
            WorkerReply(id: id, outcome: outcome, memory: memory).encoded()
        }
        switch words.first {
        case "width": shape.planes[0].width = number
        case "height": shape.planes[0].height = number
        case "channels": shape.planes[0].channels = number
        case "stride": shape.planes[0].bytesPerRow = number
        case "offset": shape.planes[0].offset = number
        case "extent": shape.planes[0].extentWidth = Double(bitPattern: UInt64(bitPattern: Int64(number)))
        case "profile": shape.profile = .payload(offset: number, count: number)
        case "held": return send(reply(.decoded(shape), memory: number))
        case "encoded": return send(reply(.encoded(offset: number, count: number)))
        case "described": return send(reply(.described([UInt8](repeating: 255, count: 100))))
        case "failed":
            var failure = WorkerFailure(kind: .limitExceeded, reason: "a lie")
            (failure.actual, failure.allowed) = (number, -number)
            return send(reply(.failed(failure)))
        case "other": return send(WorkerReply(id: id &+ 1, outcome: .decoded(shape), memory: 0).encoded())
        case "twice": send(reply(.decoded(shape)))
        case "cut": return send(Array(reply(.decoded(shape)).dropLast(number)))
        case "more": return send(reply(.decoded(shape)) + [UInt8](repeating: 0, count: number))
        case "close": exit(0)
        case "never": while true { sleep(1_000) }
        case "mutated": return send(mutated(reply(.decoded(shape)), seed: UInt64(clamping: number)))
        default: break
        }
        send(reply(.decoded(shape)))
    }

    /// Four by four pixels, as they should be.
    private static func plane() -> WorkerReply.Plane {
        let plane = PixelPlane(width: 4, height: 4, channels: 3, storage: PixelStorage(zeroedByteCount: 48))
        return WorkerReply.Plane(plane, bytesPerRow: 12, offset: 0)
    }

    /// Numbers at the edges of what a field can hold, and bits and bytes that differ.
    private static func mutated(_ packet: [UInt8], seed: UInt64) -> [UInt8] {
        var (packet, state) = (packet, seed)
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        let edges: [UInt64] = [
            0, 1, .max, 1 << 63 - 1, 1 << 63, 1 << 32 - 1, 1 << 31, 1 << 24, 1 << 24 + 1, 1 << 27, 1 << 62 - 1,
            0x7FF8_0000_0000_0000, 0x7FF0_0000_0000_0000, 0xFFF0_0000_0000_0000, 4, 2,
        ]
        for _ in 0...random(4) {
            // The number of the request stays: without it nothing else would be looked at.
            let at = 14 + random(packet.count - 14)
            switch random(3) {
            case 0: packet[at] ^= 1 << UInt8(random(8))
            case 1: packet[at] = UInt8(random(256))
            default:
                let edge = edges[random(edges.count)]
                for byte in 0..<8 where at + byte < packet.count {
                    packet[at + byte] = UInt8(truncatingIfNeeded: edge >> (8 * UInt64(byte)))
                }
            }
        }
        return packet
    }

    private static func send(_ packet: [UInt8]) {
        _ = packet.withUnsafeBytes { Foundation.send(3, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }
}

import VitrineImageCore
import Synchronization

/// The protocol of clients and helper processes: one request at a time, packets over a socket pair, and pixels in
/// memory that both have mapped.
///
/// - Descriptor 3 of the helper is the socket (`SOCK_SEQPACKET`), descriptor 4 the shared memory.
/// - The helper sends ``magic`` and ``version`` when it is ready. Each request is one packet, with the descriptor of an
///   input that is not small. Each reply is one packet.
/// - The first page of the shared memory is the header. Its first word is the number of the last request that the
///   helper took. The payload follows. A request puts the ICC profile and a small input (decode) or pixels (encode) at
///   the payload's start. A reply puts planes, a profile or a file's bytes anywhere in the payload.
///
/// The client limits the helper's memory and processor time before each request. A helper cannot change its limits.
///
/// The size of the memory is fixed and sealed when it is created. Its pages exist after the first write.
package enum WorkerProtocol {
    /// `VWKR`.
    package static let magic: UInt32 = 0x524B_5756
    package static let version: UInt16 = 13
    /// The most bytes of a packet.
    package static let maximumPacket = 16 << 10
    /// The size in bytes of descriptions that travel in a packet; longer ones are left in the shared memory.
    package static let maximumDescription = 12 << 10
    /// Whether the program can be started as a worker: its main function has called
    /// `VitrineWorkerMain.runIfRequested()`.
    package static let isOffered = Atomic<Bool>(false)
    /// The argument that turns a program into a worker.
    package static let argument = "--vitrine-worker"

    /// The work of a request.
    package enum Operation: UInt8, Sendable {
        case ping = 0
        case decode = 1
        case encode = 2
        /// Describe a document: its pages, its duration.
        case describe = 3
        /// Draw a page or a frame of a document.
        case render = 4
        /// Read the header of an image.
        case header = 5
    }
}

/// A request to a worker.
package protocol WorkerMessage: Sendable {
    /// The number its reply must have.
    var id: UInt64 { get }
    /// The limits, with the deadline and the helper's memory.
    var limits: ImageLimits { get }
    /// The packet.
    func encoded() -> [UInt8]
}

extension WorkerMessage {
    /// Reads the common start of all packets; nil for packets of other versions.
    static func operation(of packet: [UInt8]) -> WorkerProtocol.Operation? {
        var wire = WireReader(packet)
        guard wire.packetNumber() != nil else { return nil }
        return WorkerProtocol.Operation(rawValue: wire.integer())
    }
}

/// The exit status of a worker.
package enum WorkerExit: Int32, Sendable {
    /// The client has closed the socket, or no request came for a while.
    case idle = 0
    /// The program was not started by a pool.
    case misused = 64
    /// Shared memory could not be mapped.
    case noMemory = 71
    /// The sandbox could not be entered.
    case notSandboxed = 77
}

extension WireWriter {
    /// Writes the common start of all packets with the request's number.
    init(packet id: UInt64) {
        self.init()
        write(WorkerProtocol.magic)
        write(WorkerProtocol.version)
        write(id)
    }
}

extension WireReader {
    /// Reads the request's number from the common start of all packets; nil for packets of other versions.
    mutating func packetNumber() -> UInt64? {
        guard integer(UInt32.self) == WorkerProtocol.magic, integer(UInt16.self) == WorkerProtocol.version else {
            return nil
        }
        return integer()
    }
}

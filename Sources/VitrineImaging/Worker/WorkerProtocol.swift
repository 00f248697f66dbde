/// What a client and its helper process agree on: one request at a time, packets over a socket pair, and pixels in
/// memory that both have mapped.
///
/// - Descriptor 3 of the helper is the socket (`SOCK_SEQPACKET`), descriptor 4 the shared memory.
/// - The helper greets with ``magic`` and ``version`` when it is ready. Each request is one packet, with the input as a
///   descriptor unless that is small; each reply is one packet.
/// - Shared memory: the first page is the header, whose first word is the number of the request that the helper took
///   up last; the payload follows. A request puts the ICC profile and a small input (decode) or pixels (encode) at the
///   payload's start; a reply puts planes, a profile or a file's bytes anywhere in the payload.
///
/// The client limits the helper's memory and processor time before each request, from outside: a helper cannot change
/// its limits.
///
/// The size of the memory is fixed and sealed when it is made; its pages exist only once written.
package enum WorkerProtocol {
    /// `VWKR`.
    package static let magic: UInt32 = 0x524B_5756
    package static let version: UInt16 = 5
    /// Bytes a packet may have.
    package static let maximumPacket = 16 << 10
    /// Bytes in front of the payload.
    package static let headerSize = 4_096
    /// Bytes that the shared memory has at most; ``HelperMemory/share(for:)`` says how many.
    package static let memorySize = 1 << 30
    /// Payload bytes whose pages are kept from one request to the next.
    package static let keptPayload = 16 << 20
    /// The argument that turns a program into a worker.
    package static let argument = "--vitrine-worker"

    /// What a request asks for.
    package enum Operation: UInt8, Sendable {
        case ping = 0
        case decode = 1
        case encode = 2
        /// What a document holds: its pages, its duration.
        case describe = 3
        /// A page or a frame of a document.
        case render = 4
    }
}

/// A request as the exchange with a worker sees it.
package protocol WorkerMessage: Sendable {
    /// The number its reply must have.
    var id: UInt64 { get }
    /// Its deadline and the helper's memory are limited by these.
    var limits: ImageLimits { get }
    /// The packet.
    func encoded() -> [UInt8]
}

extension WorkerMessage {
    /// Reads the start that all packets share; nil when it is not one of this version.
    static func operation(of packet: [UInt8]) -> WorkerProtocol.Operation? {
        var wire = WireReader(packet)
        guard wire.packetNumber() != nil else { return nil }
        return WorkerProtocol.Operation(rawValue: wire.integer())
    }
}

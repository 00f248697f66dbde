/// A request for a page or frame of what is no picture itself: a PDF, a video.
package struct DocumentRequest: WorkerMessage {
    package var id: UInt64
    /// `.describe` or `.render`.
    package var operation: WorkerProtocol.Operation
    /// The smallest size wanted of a page that is drawn; nil for its own.
    package var target: PixelSize?
    package var limits: ImageLimits
    /// What only the two ends understand: the page, a password, a second.
    package var parameters: [UInt8]

    package init(
        id: UInt64, operation: WorkerProtocol.Operation, target: PixelSize? = nil, parameters: [UInt8],
        limits: ImageLimits
    ) {
        self.id = id
        self.operation = operation
        self.target = target
        self.parameters = parameters
        self.limits = limits
    }

    package func encoded() -> [UInt8] {
        var wire = WireWriter(packet: id)
        wire.write(operation.rawValue)
        wire.write(target?.width ?? 0)
        wire.write(target?.height ?? 0)
        WorkerRequest.write(limits, to: &wire)
        wire.write(parameters)
        return wire.bytes
    }

    /// Reads a packet; nil when it is not one of this version.
    package init?(_ packet: [UInt8]) {
        var wire = WireReader(packet)
        guard let number = wire.packetNumber() else { return nil }
        id = number
        operation = wire.enumeration(WorkerProtocol.Operation.self, or: .ping)
        let size = PixelSize(width: wire.int(), height: wire.int())
        target = size.isEmpty ? nil : size
        limits = WorkerRequest.readLimits(from: &wire)
        parameters = wire.byteArray()
        guard wire.isComplete else { return nil }
    }
}

import VitrineCore
import VitrineImageCore

/// A request to a worker. It does not contain the input's name: the client adds it to errors.
package struct WorkerRequest: WorkerMessage {
    package var id: UInt64
    package var operation: WorkerProtocol.Operation
    /// Decode: the header, as the client has it, without the profile. Read a header: the format that the client found.
    package var info: ImageInfo
    package var target: PixelSize?
    package var region: PixelRect?
    package var options = DecodeOptions()
    package var limits: ImageLimits
    /// The type name of the decoder to use; empty for the first that reads the format.
    package var decoder = ""
    /// Decode: bytes of ICC profile at the start of the payload, or -1 for none.
    package var profileCount = -1
    /// Decode: bytes of input in the payload, or -1 when it comes as a descriptor.
    package var inputCount = -1
    /// Decode: whether the planes are to be scaled to exactly `target`.
    package var scales = false
    /// Decode: how many threads to use, at least 1.
    package var threads = 1
    /// The offset of the input in the payload: behind the profile.
    package var inputOffset: Int { profileCount > 0 && profileCount < 1 << 30 ? (profileCount + 63) & ~63 : 0 }
    /// Encode: bytes from row to row of the pixels at the start of the payload; `info.storedSize` is their size.
    package var bytesPerRow = 0
    package var alpha = PixelImage.Alpha.opaque
    package var quality = 0.0
    package var isProgressive = false

    package init(id: UInt64, operation: WorkerProtocol.Operation, info: ImageInfo, limits: ImageLimits) {
        self.id = id
        self.operation = operation
        self.info = info
        self.limits = limits
    }

    /// Creates a request to decode.
    package init(id: UInt64, _ request: DecodeRequest) {
        self.init(id: id, operation: .decode, info: request.info, limits: request.limits)
        target = request.target
        region = request.region
        options = request.options
        profileCount = request.info.samplesProfile?.count ?? -1
        scales = request.allowsScaling
        threads = request.threads
    }

    /// The packet.
    package func encoded() -> [UInt8] {
        var wire = WireWriter(packet: id)
        wire.write(operation.rawValue)
        info.write(to: &wire)
        wire.write(target?.width ?? 0)
        wire.write(target?.height ?? 0)
        wire.write(region)
        options.write(to: &wire)
        Self.write(limits, to: &wire)
        wire.write(decoder)
        wire.write(profileCount)
        wire.write(inputCount)
        wire.write(scales)
        wire.write(threads)
        wire.write(bytesPerRow)
        wire.write(case: alpha)
        wire.write(quality)
        wire.write(isProgressive)
        return wire.bytes
    }

    /// Reads a packet; nil for malformed ones and other versions.
    package init?(_ packet: [UInt8]) {
        var wire = WireReader(packet)
        guard let number = wire.packetNumber() else { return nil }
        id = number
        operation = wire.enumeration(WorkerProtocol.Operation.self, or: .ping)
        info = ImageInfo(from: &wire)
        let size = PixelSize(width: wire.int(), height: wire.int())
        target = size.isEmpty ? nil : size
        region = wire.rect()
        options = DecodeOptions(from: &wire)
        limits = Self.readLimits(from: &wire)
        decoder = wire.text()
        profileCount = wire.int()
        inputCount = wire.int()
        scales = wire.bool()
        threads = wire.int()
        bytesPerRow = wire.int()
        alpha = wire.enumeration(casesOf: PixelImage.Alpha.self, or: .opaque)
        quality = wire.double()
        isProgressive = wire.bool()
        guard wire.isComplete else { return nil }
    }

    // Field by field: a key path would cost more than all other work on a limit.
    static func write(_ limits: ImageLimits, to wire: inout WireWriter) {
        wire.write(limits.maximumInputBytes)
        wire.write(limits.maximumPixels)
        wire.write(limits.maximumResultPixels)
        wire.write(limits.maximumInterlacedPixels)
        wire.write(limits.maximumWholeImagePixels)
        wire.write(limits.maximumCoefficientBytes)
        wire.write(limits.maximumSide)
        wire.write(limits.maximumFrames)
        wire.write(limits.maximumProfileBytes)
        wire.write(limits.maximumDocumentBytes)
        wire.write(limits.maximumOutputSide)
        wire.write(limits.maximumWorkerMemory)
        wire.write(limits.deadline)
    }

    static func readLimits(from wire: inout WireReader) -> ImageLimits {
        var limits = ImageLimits()
        limits.maximumInputBytes = wire.int()
        limits.maximumPixels = wire.int()
        limits.maximumResultPixels = wire.int()
        limits.maximumInterlacedPixels = wire.int()
        limits.maximumWholeImagePixels = wire.int()
        limits.maximumCoefficientBytes = wire.int()
        limits.maximumSide = wire.int()
        limits.maximumFrames = wire.int()
        limits.maximumProfileBytes = wire.int()
        limits.maximumDocumentBytes = wire.int()
        limits.maximumOutputSide = wire.int()
        limits.maximumWorkerMemory = wire.int()
        limits.deadline = wire.double()
        return limits
    }
}

/// A request for a page or frame of a document: a PDF, a video.
package struct DocumentRequest: WorkerMessage {
    package var id: UInt64
    /// `.describe` or `.render`.
    package var operation: WorkerProtocol.Operation
    /// The smallest wanted size of a page; nil for its own.
    package var target: PixelSize?
    package var limits: ImageLimits
    /// Parameters in the format of client and renderer: the page, a password, a second.
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

    /// Reads a packet; nil for malformed ones and other versions.
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

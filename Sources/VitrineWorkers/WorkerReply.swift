import VitrineImageCore

/// A reply of a worker.
package struct WorkerReply: Sendable {
    /// The place of a plane in the payload.
    package struct Plane: Sendable {
        package var width: Int
        package var height: Int
        package var channels: Int
        package var bytesPerRow: Int
        package var extentWidth: Double
        package var extentHeight: Double
        package var offset: Int

        package init(_ plane: PixelPlane, bytesPerRow: Int, offset: Int) {
            width = plane.width
            height = plane.height
            channels = plane.channels
            self.bytesPerRow = bytesPerRow
            extentWidth = plane.extentWidth
            extentHeight = plane.extentHeight
            self.offset = offset
        }

        fileprivate init(from wire: inout WireReader) {
            width = wire.int()
            height = wire.int()
            channels = wire.int()
            bytesPerRow = wire.int()
            extentWidth = wire.double()
            extentHeight = wire.double()
            offset = wire.int()
        }

        fileprivate func write(to wire: inout WireWriter) {
            for value in [width, height, channels, bytesPerRow] { wire.write(value) }
            wire.write(extentWidth)
            wire.write(extentHeight)
            wire.write(offset)
        }
    }

    /// The profile of decoded samples.
    package enum Profile: Sendable, Hashable {
        case none
        /// The profile of the request.
        case requested
        /// A profile in the payload.
        case payload(offset: Int, count: Int)
    }

    /// The result of a request.
    package enum Outcome: Sendable {
        /// The worker runs, in a sandbox with these parts.
        case pong(WorkerSandbox)
        case decoded(DecodedShape)
        /// A file's bytes in the payload.
        case encoded(offset: Int, count: Int)
        /// The description of a document.
        case described([UInt8])
        case failed(WorkerFailure)
    }

    /// A ``DecodedImage`` without its samples.
    package struct DecodedShape: Sendable {
        package var planes: [Plane]
        package var model: DecodedImage.Model
        package var alpha: DecodedImage.Alpha
        package var profile: Profile
        package var isPartial: Bool
        package var samplesAreMeans: Bool
        package var filledHeight = 1.0
        package var region: PixelRect?
        /// The place of ``DecodedImage/rowIndex`` in the payload; no bytes for none.
        package var rows = (offset: 0, count: 0)

        package init(
            planes: [Plane], model: DecodedImage.Model, alpha: DecodedImage.Alpha, profile: Profile, isPartial: Bool,
            samplesAreMeans: Bool = false
        ) {
            self.planes = planes
            self.model = model
            self.alpha = alpha
            self.profile = profile
            self.isPartial = isPartial
            self.samplesAreMeans = samplesAreMeans
        }

        /// The first payload byte behind the planes, by the unchecked numbers of the worker.
        package var end: Int {
            planes.reduce(0) { end, plane in
                let bytes = plane.bytesPerRow.multipliedReportingOverflow(by: plane.height)
                let behind = plane.offset.addingReportingOverflow(bytes.partialValue)
                return bytes.overflow || behind.overflow ? .max : max(end, behind.partialValue)
            }
        }
    }

    package var id: UInt64
    package var outcome: Outcome
    /// Private memory of the worker after the request, in bytes.
    package var memory: Int
    /// Whether the worker serves no other request: a library has found a fault in itself, so that the memory of the
    /// process may be damaged.
    package var isLast = false

    package init(id: UInt64, outcome: Outcome, memory: Int) {
        self.id = id
        self.outcome = outcome
        self.memory = memory
    }

    /// The packet.
    package func encoded() -> [UInt8] {
        var wire = WireWriter(packet: id)
        wire.write(memory)
        wire.write(isLast)
        switch outcome {
        case .pong(let sandbox):
            wire.write(UInt8(0))
            wire.write(sandbox.rawValue)
        case .decoded(let shape):
            wire.write(UInt8(1))
            Self.write(shape, to: &wire)
        case .encoded(let offset, let count):
            wire.write(UInt8(2))
            wire.write(offset)
            wire.write(count)
        case .described(let description):
            wire.write(UInt8(4))
            wire.write(description)
        case .failed(let failure):
            wire.write(UInt8(3))
            failure.write(to: &wire)
        }
        return wire.bytes
    }

    /// Reads a packet; nil for malformed ones and other versions.
    package init?(_ packet: [UInt8]) {
        var wire = WireReader(packet)
        guard let number = wire.packetNumber() else { return nil }
        id = number
        memory = wire.int()
        isLast = wire.bool()
        switch wire.integer(UInt8.self) {
        case 0: outcome = .pong(WorkerSandbox(rawValue: wire.integer(UInt8.self)))
        case 1: outcome = .decoded(Self.readShape(from: &wire))
        case 2: outcome = .encoded(offset: wire.int(), count: wire.int())
        case 4: outcome = .described(wire.byteArray())
        case 3: outcome = .failed(WorkerFailure(from: &wire))
        default: return nil
        }
        guard wire.isComplete else { return nil }
    }

    private static func write(_ shape: DecodedShape, to wire: inout WireWriter) {
        switch shape.model {
        case .gray: wire.write(UInt8(0))
        case .rgb: wire.write(UInt8(1))
        case .cmyk(let inverted): wire.write(UInt8(inverted ? 3 : 2))
        case .yCbCr(let matrix, let fullRange):
            let code: UInt8 = matrix == .bt601 ? 4 : matrix == .bt709 ? 6 : 8
            wire.write(code + (fullRange ? 1 : 0))
        }
        wire.write(shape.alpha.rawValue)
        wire.write(shape.isPartial)
        wire.write(shape.samplesAreMeans)
        wire.write(shape.filledHeight)
        wire.write(shape.region)
        wire.write(shape.rows.offset)
        wire.write(shape.rows.count)
        switch shape.profile {
        case .none: for value in [0, 0, 0] { wire.write(value) }
        case .requested: for value in [1, 0, 0] { wire.write(value) }
        case .payload(let offset, let count): for value in [2, offset, count] { wire.write(value) }
        }
        wire.write(UInt8(shape.planes.count))
        for plane in shape.planes { plane.write(to: &wire) }
    }

    private static func readShape(from wire: inout WireReader) -> DecodedShape {
        var shape = DecodedShape(planes: [], model: .gray, alpha: .none, profile: .none, isPartial: false)
        let model = wire.integer(UInt8.self)
        switch model {
        case 0: shape.model = .gray
        case 1: shape.model = .rgb
        case 2, 3: shape.model = .cmyk(inverted: model == 3)
        case 4...9:
            let matrix: DecodedImage.Matrix = model < 6 ? .bt601 : model < 8 ? .bt709 : .bt2020
            shape.model = .yCbCr(matrix, fullRange: model % 2 == 1)
        default: wire.invalidate()
        }
        shape.alpha = wire.enumeration(DecodedImage.Alpha.self, or: .none)
        shape.isPartial = wire.bool()
        shape.samplesAreMeans = wire.bool()
        shape.filledHeight = wire.double()
        if !(0...1).contains(shape.filledHeight) { wire.invalidate() }
        shape.region = wire.rect()
        shape.rows = (wire.int(), wire.int())
        let kind = wire.int()
        let (offset, count) = (wire.int(), wire.int())
        switch kind {
        case 0: shape.profile = .none
        case 1: shape.profile = .requested
        case 2: shape.profile = .payload(offset: offset, count: count)
        default: wire.invalidate()
        }
        let planes = wire.integer(UInt8.self)
        if planes == 0 || planes > 4 { wire.invalidate() }
        for _ in 0..<min(planes, 4) { shape.planes.append(Plane(from: &wire)) }
        return shape
    }
}

/// The parts of the sandbox that a worker could set up.
package struct WorkerSandbox: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The filter of system calls, seccomp.
    package static let systemCalls = WorkerSandbox(rawValue: 1)
    /// The rules for files, Landlock. Without them the filter forbids all opening of files.
    package static let files = WorkerSandbox(rawValue: 2)
    /// Both parts.
    package static let complete: WorkerSandbox = [.systemCalls, .files]

    /// The names of the parts that are missing; nil if none is.
    package var missing: String? {
        let names = [(WorkerSandbox.systemCalls, "seccomp"), (.files, "Landlock")].filter { !contains($0.0) }.map(\.1)
        return names.isEmpty ? nil : names.joined(separator: " and ")
    }
}

/// An ``ImageError`` in a reply, without the name of the input.
package struct WorkerFailure: Error, Sendable, Hashable {
    /// The case of ``ImageError``.
    package enum Kind: UInt8, Sendable {
        case unreadable, empty, notAnImage, unsupported, corrupt, truncated, limitExceeded, invalidRequest, timedOut
        case cancelled, workerFailed, encodingFailed
    }

    package var kind: Kind
    package var reason = ""
    package var limit = ImageLimits.Kind.memory
    package var actual = 0
    package var allowed = 0

    package init(kind: Kind, reason: String = "") {
        self.kind = kind
        self.reason = reason
    }

    package init(_ error: ImageError) {
        switch error {
        case .unreadable(_, let reason): self.init(kind: .unreadable, reason: reason)
        case .empty: self.init(kind: .empty)
        case .notAnImage: self.init(kind: .notAnImage)
        case .unsupported(_, let reason): self.init(kind: .unsupported, reason: reason)
        case .corrupt(_, let reason): self.init(kind: .corrupt, reason: reason)
        case .truncated: self.init(kind: .truncated)
        case .limitExceeded(_, let limit, let actual, let allowed):
            self.init(kind: .limitExceeded)
            self.limit = limit
            self.actual = actual
            self.allowed = allowed
        case .invalidRequest(let reason): self.init(kind: .invalidRequest, reason: reason)
        case .timedOut: self.init(kind: .timedOut)
        case .cancelled: self.init(kind: .cancelled)
        case .workerFailed(_, let reason): self.init(kind: .workerFailed, reason: reason)
        // Registered codecs do not run in workers.
        case .decoderFailed: self.init(kind: .unsupported, reason: error.reason)
        case .encodingFailed(_, let reason): self.init(kind: .encodingFailed, reason: reason)
        }
    }

    package init(from wire: inout WireReader) {
        kind = wire.enumeration(Kind.self, or: .workerFailed)
        reason = wire.text()
        limit = wire.enumeration(casesOf: ImageLimits.Kind.self, or: .memory)
        actual = wire.int()
        allowed = wire.int()
    }

    package func write(to wire: inout WireWriter) {
        wire.write(kind.rawValue)
        wire.write(reason)
        wire.write(case: limit)
        wire.write(actual)
        wire.write(allowed)
    }

    /// Returns the error with the name of the input.
    package func error(input: String, format: ImageFormat?) -> ImageError {
        switch kind {
        case .unreadable: .unreadable(input: input, reason: reason)
        case .empty: .empty(input: input)
        case .notAnImage: .notAnImage(input: input)
        case .unsupported: .unsupported(input: input, reason: reason)
        case .corrupt: .corrupt(input: input, reason: reason)
        case .truncated: .truncated(input: input)
        case .limitExceeded: .limitExceeded(input: input, limit: limit, actual: actual, allowed: allowed)
        case .invalidRequest: .invalidRequest(reason: reason)
        case .timedOut: .timedOut(input: input)
        case .cancelled: .cancelled(input: input)
        case .workerFailed: .workerFailed(input: input, reason: reason)
        case .encodingFailed:
            if let format {
                .encodingFailed(format: format, reason: reason)
            } else {
                .workerFailed(input: input, reason: reason)
            }
        }
    }
}

extension DecodedImage {
    /// Copies a decoded image out of a worker's shared memory.
    ///
    /// Returns nil unless all planes lie within the payload, match the colour model, and respect `limits`.
    package init?(
        _ shape: WorkerReply.DecodedShape, memory: SharedMemory, requestedProfile: [UInt8]?, limits: ImageLimits
    ) {
        guard Self.areConsistent(shape), Self.isWithinLimits(shape, limits) else { return nil }
        var planes: [PixelPlane] = []
        for plane in shape.planes {
            guard let copied = Self.copy(plane, memory: memory) else { return nil }
            planes.append(copied)
        }
        var profile: [UInt8]?
        switch shape.profile {
        case .none: break
        case .requested: profile = requestedProfile
        case .payload(let offset, let count):
            guard count <= limits.maximumProfileBytes, let copied = memory.bytes(at: offset, count: count) else {
                return nil
            }
            profile = copied
        }
        self.init(
            planes: planes, model: shape.model, alpha: shape.alpha, colorProfile: profile, isPartial: shape.isPartial,
            samplesAreMeans: shape.samplesAreMeans)
        filledHeight = shape.filledHeight
        region = shape.region
        if shape.rows.count != 0 {
            guard shape.rows.count <= DecodedImage.maximumRowIndexBytes,
                let bytes = memory.bytes(at: shape.rows.offset, count: shape.rows.count)
            else { return nil }
            rowIndex = bytes
        }
    }

    private static func areConsistent(_ shape: WorkerReply.DecodedShape) -> Bool {
        let extra = shape.alpha == .none ? 0 : 1
        let channels = shape.planes.map(\.channels)
        switch shape.model {
        case .gray: return channels == [1 + extra]
        case .rgb: return channels == [3 + extra]
        case .cmyk: return channels == (extra == 0 ? [4] : [4, 1])
        case .yCbCr: return channels.count == 3 + extra && channels.allSatisfy { $0 == 1 }
        }
    }

    /// Returns whether the sizes are plausible, since the copy takes memory of this process. Pixels must be within the
    /// limits, rows must not be mostly padding, and all planes together must fit the shared memory.
    private static func isWithinLimits(_ shape: WorkerReply.DecodedShape, _ limits: ImageLimits) -> Bool {
        let output = PixelSize(limits.maximumOutputSide).pixelCount
        let pixels = max(limits.maximumPixels, output)
        var bytes = 0
        for plane in shape.planes {
            let row = plane.width.multipliedReportingOverflow(by: plane.channels)
            let size = plane.bytesPerRow.multipliedReportingOverflow(by: plane.height)
            guard plane.width > 0, plane.height > 0, !row.overflow, !size.overflow,
                PixelSize(width: plane.width, height: plane.height).pixelCount <= pixels,
                plane.bytesPerRow / 2 <= max(row.partialValue, 64)
            else { return false }
            let (sum, overflow) = bytes.addingReportingOverflow(size.partialValue)
            guard !overflow, sum <= SharedMemory.memorySize else { return false }
            bytes = sum
        }
        return true
    }

    private static func copy(_ plane: WorkerReply.Plane, memory: SharedMemory) -> PixelPlane? {
        let sides = 1..<(1 << 24)
        guard sides.contains(plane.width), sides.contains(plane.height), (1...4).contains(plane.channels),
            plane.bytesPerRow >= plane.width * plane.channels, plane.bytesPerRow <= 1 << 27,
            plane.extentWidth > 0, plane.extentWidth <= Double(plane.width),
            plane.extentHeight > 0, plane.extentHeight <= Double(plane.height),
            let storage = memory.copy(at: plane.offset, count: plane.bytesPerRow * plane.height)
        else { return nil }
        return PixelPlane(
            width: plane.width, height: plane.height, channels: plane.channels, bytesPerRow: plane.bytesPerRow,
            extent: (plane.extentWidth, plane.extentHeight), storage: storage)
    }
}

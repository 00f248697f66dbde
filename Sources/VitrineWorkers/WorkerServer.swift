import VitrineImageCore
import CVitrineSandbox

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The server side of ``WorkerPool``: warms up, enters the sandbox, and answers requests until the client closes the
/// socket.
package struct WorkerServer {
    /// Seconds without a request after which the worker ends.
    package static let idleTimeout: Int32 = 30

    /// The reason for errors of workers without a renderer for documents.
    package static let readsNoDocuments = "this worker reads no documents"

    /// Requests between two measurements of the worker's memory.
    private static let memoryInterval = 4

    /// Pixels of an input whose work can leave much memory behind, so that it is measured afterwards.
    private static let largeInput = 4 << 20
    /// Bytes of private memory beyond those of the last return from which on unused memory returns to the system.
    private static let returnableMemory = 16 << 20

    private let codecs: Codecs
    private let encoders: [any ImageEncoding]
    private let documents: (any DocumentRendering)?
    private let files: (any FileReading)?
    /// Renders frames of animations, in a worker with decoders.
    private let animations: AnimationRenderer?
    private let warmUp: () -> Void
    private let hasFailedCheck: () -> Bool
    private let patience: () -> Int32

    /// - Parameters:
    ///   - codecs: Decode images and animations.
    ///   - documents: Describes and draws documents.
    ///   - files: Reads headers of images and covers of recordings.
    ///   - warmUp: Loads all files that decoding needs, because the sandbox closes the file system.
    ///   - hasFailedCheck: Returns whether a library has reported a defect of its own, such as a failed assertion. The
    ///     worker then ends after its reply.
    ///   - patience: Returns the milliseconds to wait for the next request, before every wait. Default ``idleTimeout``.
    package init(
        codecs: Codecs = Codecs([]), encoders: [any ImageEncoding] = [],
        documents: (any DocumentRendering)? = nil, files: (any FileReading)? = nil, warmUp: @escaping () -> Void = {},
        hasFailedCheck: @escaping () -> Bool = { false },
        patience: @escaping () -> Int32 = { WorkerServer.idleTimeout * 1_000 }
    ) {
        self.codecs = codecs
        self.encoders = encoders
        animations = codecs.all.isEmpty ? nil : AnimationRenderer(codecs)
        self.documents = documents
        self.files = files
        self.warmUp = warmUp
        self.hasFailedCheck = hasFailedCheck
        self.patience = patience
    }

    /// Serves on descriptors 3 and 4 and returns the exit status.
    package func run() -> WorkerExit {
        var status = stat()
        guard fstat(CSANDBOX_SOCKET, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK,
            fstat(CSANDBOX_MEMORY, &status) == 0,
            (SharedMemory.headerSize + SharedMemory.keptPayload...SharedMemory.memorySize)
                .contains(Int(status.st_size))
        else { return .misused }
        csandbox_tune_allocator()
        csandbox_close_from(CSANDBOX_MEMORY + 1)
        let memory: SharedMemory
        do {
            memory = try SharedMemory(adopting: CSANDBOX_MEMORY, size: Int(status.st_size))
        } catch {
            return .noMemory
        }
        let usage = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        var sandbox = WorkerSandbox()
        // Decoding works without it, except for fonts that the warm-up has not loaded.
        if csandbox_restrict_files() == 0 { sandbox.insert(.files) }
        for codec in codecs.all { for decoder in codec.decoders { decoder.loadLibraries() } }
        warmUp()
        guard csandbox_exit_on_hangup(CSANDBOX_SOCKET) == 0 else { return .noMemory }
        // Cannot be changed inside of the sandbox.
        let settled = max(1, patience())
        guard csandbox_set_patience(CSANDBOX_SOCKET, settled) == 0 else { return .misused }
        if csandbox_enter() == 0 { sandbox.insert(.systemCalls) }
        guard sandbox.contains(.systemCalls) || Self.mayRunFree else { return .notSandboxed }
        var held = Int(csandbox_private_memory(usage))
        send(WorkerReply(id: 0, outcome: .pong(sandbox), memory: held))
        var (served, kept) = (0, held)
        while let (request, input) = receive(settled) {
            memory.takenRequest = request.id
            let outcome = answer(request, input: input, memory: memory, sandbox: sandbox)
            served += 1
            // Not each time: a measurement takes a fifth of the time of an exchange.
            if served % Self.memoryInterval == 0 || Self.isLarge(request) {
                held = Int(csandbox_private_memory(usage))
            }
            var reply = WorkerReply(id: request.id, outcome: outcome, memory: held)
            reply.isLast = hasFailedCheck() || Self.isInternal(outcome)
            send(reply)
            if reply.isLast { return .idle }
            guard held > kept + Self.returnableMemory else { continue }
            // After the reply, so that nobody waits for it.
            csandbox_return_memory()
            held = Int(csandbox_private_memory(usage))
            kept = held
        }
        return .idle
    }

    private static func isLarge(_ request: any WorkerMessage) -> Bool {
        guard let request = request as? WorkerRequest else { return true }
        return request.info.storedSize.pixelCount >= largeInput
    }

    /// Whether an error is one that a library calls internal: it has met a state that it takes for impossible, such as
    /// damaged memory.
    private static func isInternal(_ outcome: WorkerReply.Outcome) -> Bool {
        guard case .failed(let failure) = outcome else { return false }
        let reason = failure.reason.lowercased()
        return ["internal", "assert"].contains { reason.contains($0) }
    }

    /// For systems whose container already filters system calls and forbids nesting.
    private static var mayRunFree: Bool { getenv("VITRINE_WORKER_SANDBOX").map { String(cString: $0) } == "off" }

    private func send(_ reply: WorkerReply) {
        let packet = reply.encoded()
        _ = packet.withUnsafeBytes { csandbox_send(CSANDBOX_SOCKET, $0.baseAddress, $0.count, -1) }
    }

    /// Returns the next request and its input; nil when no more will come. The socket waits `settled` milliseconds.
    private func receive(_ settled: Int32) -> (any WorkerMessage, Int32)? {
        let patience = patience()
        guard patience == settled || csandbox_wait_readable(CSANDBOX_SOCKET, patience) == 0 else { return nil }
        var input: Int32 = -1
        var code: Int32 = 0
        let packet = [UInt8](unsafeUninitializedCapacity: WorkerProtocol.maximumPacket) { buffer, count in
            count = 0
            code = csandbox_receive(CSANDBOX_SOCKET, settled, buffer.baseAddress, buffer.count, &count, &input)
        }
        guard code == 0, !packet.isEmpty, let operation = WorkerRequest.operation(of: packet) else { return nil }
        switch operation {
        case .ping, .decode, .encode, .header: return WorkerRequest(packet).map { ($0, input) }
        case .describe, .render: return DocumentRequest(packet).map { ($0, input) }
        }
    }

    private func answer(
        _ request: any WorkerMessage, input: Int32, memory: SharedMemory, sandbox: WorkerSandbox
    ) -> WorkerReply.Outcome {
        do throws(ImageError) {
            if let request = request as? DocumentRequest {
                return try answer(request, input: input, memory: memory)
            }
            guard let request = request as? WorkerRequest else { throw .invalidRequest(reason: "an unknown request") }
            switch request.operation {
            case .decode:
                return try decode(request, input: input, memory: memory)
            case .encode:
                if input >= 0 { close(input) }
                return try encode(request, memory: memory)
            case .header:
                guard let files else { throw .unsupported(input: "input", reason: "this worker reads no images") }
                let source = try Self.source(input, request: request, buffer: SharedBuffer(memory))
                let header = try files.header(
                    of: source, format: request.info.format, picture: request.info.pictureIndex,
                    limits: request.limits)
                return try describe(header.encoded(), memory)
            case .ping, .describe, .render:
                if input >= 0 { close(input) }
                return .pong(sandbox)
            }
        } catch {
            return .failed(WorkerFailure(error))
        }
    }

    private func decode(
        _ request: WorkerRequest, input: Int32, memory: SharedMemory
    ) throws(ImageError) -> WorkerReply.Outcome {
        let buffer = SharedBuffer(memory)
        let source = try Self.source(input, request: request, buffer: buffer)
        var info = request.info
        if request.profileCount >= 0 { info.colorProfile = memory.bytes(at: 0, count: request.profileCount) }
        var job = DecodeRequest(
            info: info, target: request.target, options: request.options, limits: request.limits)
        job.resultBuffer = buffer
        job.region = request.region
        job.allowsScaling = request.scales
        job.threads = max(1, min(request.threads, IdleCores.maximumThreads))
        // Those that the host has claimed for this decode.
        IdleCores.shared.limit(to: job.threads)
        var candidates = codecs.decoders(for: info.format)
        if !request.decoder.isEmpty {
            candidates = candidates.filter { request.decoder == String(describing: type(of: $0)) }
        }
        var image = try candidates.decode(source, job)
        if request.scales, let target = request.target { image = image.reduced(to: target) }
        return try share(image, requestedProfile: info.colorProfile, buffer: buffer, memory: memory)
    }

    private func answer(
        _ request: DocumentRequest, input: Int32, memory: SharedMemory
    ) throws(ImageError) -> WorkerReply.Outcome {
        let source = try Self.source(input)
        if request.operation == .render, let animations, FrameParameters(request.parameters) != nil {
            let image = try animations.render(source, request)
            return try share(image, requestedProfile: nil, buffer: SharedBuffer(memory), memory: memory)
        }
        if request.operation == .describe, let files, let cover = CoverParameters(request.parameters) {
            return try describe(files.cover(of: source, kind: cover.kind, limits: request.limits), memory)
        }
        guard let documents else { throw .unsupported(input: "input", reason: Self.readsNoDocuments) }
        guard request.operation == .render else { return try describe(documents.describe(source, request), memory) }
        let image = try documents.render(source, request)
        return try share(image, requestedProfile: nil, buffer: SharedBuffer(memory), memory: memory)
    }

    /// A description in the packet, or in the shared memory if it is long.
    private func describe(_ description: [UInt8], _ memory: SharedMemory) throws(ImageError) -> WorkerReply.Outcome {
        guard description.count > WorkerProtocol.maximumDescription else { return .described(description) }
        guard description.count <= memory.payload.count else {
            throw .limitExceeded(
                input: "input", limit: .memory, actual: description.count, allowed: memory.payload.count)
        }
        memory.payload.copyBytes(from: description)
        return .encoded(offset: 0, count: description.count)
    }

    /// Returns the input of a request, from the descriptor or in the shared memory, where nothing else gets its place.
    private static func source(
        _ input: Int32, request: WorkerRequest, buffer: SharedBuffer
    ) throws(ImageError) -> ByteSource {
        guard request.inputCount >= 0 else { return try source(input) }
        if input >= 0 { close(input) }
        guard buffer.take(request.inputOffset) != nil, let bytes = buffer.part(request.inputCount) else {
            throw .invalidRequest(reason: "the input lies outside of the shared memory")
        }
        return ByteSource(storage: bytes, name: "input")
    }

    /// Returns the input, and takes ownership of the descriptor.
    private static func source(_ input: Int32) throws(ImageError) -> ByteSource {
        do throws(ImageError) {
            return try ByteSource(descriptor: input, name: "input", owned: true)
        } catch {
            if input >= 0 { close(input) }
            throw error
        }
    }

    /// Copies an image into the shared memory, in rows without gaps, except for planes that are already there.
    private func share(
        _ image: DecodedImage, requestedProfile: [UInt8]?, buffer: SharedBuffer, memory: SharedMemory
    ) throws(ImageError) -> WorkerReply.Outcome {
        var shape = WorkerReply.DecodedShape(
            planes: [], model: image.model, alpha: image.alpha, profile: .none, isPartial: image.isPartial,
            samplesAreMeans: image.samplesAreMeans)
        shape.filledHeight = image.filledHeight
        shape.region = image.region
        func place(_ count: Int) throws(ImageError) -> Int {
            if let offset = buffer.take(count) { return offset }
            throw .limitExceeded(input: "input", limit: .memory, actual: count, allowed: memory.payload.count)
        }
        for plane in image.planes {
            if let offset = buffer.offset(of: plane.storage) {
                shape.planes.append(WorkerReply.Plane(plane, bytesPerRow: plane.bytesPerRow, offset: offset))
                continue
            }
            let rowBytes = plane.width * plane.channels
            let offset = try place(rowBytes * plane.height)
            plane.storage.withUnsafeBytes { bytes in
                for y in 0..<plane.height {
                    let row = UnsafeRawBufferPointer(rebasing: bytes[(y * plane.bytesPerRow)...].prefix(rowBytes))
                    let target = memory.payload[(offset + y * rowBytes)...]
                    UnsafeMutableRawBufferPointer(rebasing: target).copyMemory(from: row)
                }
            }
            shape.planes.append(WorkerReply.Plane(plane, bytesPerRow: rowBytes, offset: offset))
        }
        if let profile = image.colorProfile {
            if profile == requestedProfile {
                shape.profile = .requested
            } else {
                let offset = try place(profile.count)
                UnsafeMutableRawBufferPointer(rebasing: memory.payload[offset...]).copyBytes(from: profile)
                shape.profile = .payload(offset: offset, count: profile.count)
            }
        }
        if let rows = image.rowIndex {
            shape.rows = (try place(rows.count), rows.count)
            UnsafeMutableRawBufferPointer(rebasing: memory.payload[shape.rows.offset...]).copyBytes(from: rows)
        }
        return .decoded(shape)
    }

    private func encode(_ request: WorkerRequest, memory: SharedMemory) throws(ImageError) -> WorkerReply.Outcome {
        let format = request.info.format
        let size = request.info.storedSize
        guard let encoder = encoders.first(where: { $0.format == format }) else {
            throw .encodingFailed(format: format, reason: "the worker has no encoder for it")
        }
        guard !size.isEmpty, size.width <= 1 << 24, size.height <= 1 << 24,
            request.bytesPerRow == size.width * PixelImage.bytesPerPixel,
            let pixels = memory.copy(at: 0, count: request.bytesPerRow * size.height)
        else { throw .encodingFailed(format: format, reason: "the request is malformed") }
        let image = PixelImage(
            width: size.width, height: size.height, bytesPerRow: request.bytesPerRow, alpha: request.alpha,
            storage: pixels)
        var options = EncodeOptions()
        options.isProgressive = request.isProgressive
        let file = try encoder.encode(image, quality: request.quality, options: options)
        guard file.count <= memory.payload.count else {
            throw .encodingFailed(format: format, reason: "the file is larger than the shared memory")
        }
        memory.payload.copyBytes(from: file)
        return .encoded(offset: 0, count: file.count)
    }
}

/// Reads in a worker all that is known of a file without its pixels.
package protocol FileReading: Sendable {
    /// The header of an image.
    ///
    /// - Parameters:
    ///   - format: The format, which the name of the file may have told.
    ///   - picture: Which image of a book or a comic, from 0; a damaged one is passed over.
    func header(
        of source: ByteSource, format: ImageFormat, picture: Int, limits: ImageLimits
    ) throws(ImageError) -> ImageHeader

    /// The image of a recording: its kind in one byte, and its file; nothing if it has none that can be read.
    func cover(of source: ByteSource, kind: Int, limits: ImageLimits) throws(ImageError) -> [UInt8]
}

/// The parameters of a request for the image of a recording.
package struct CoverParameters: Sendable {
    /// The subject of the image, by the numbers of ID3v2.
    package var kind: Int

    /// `COVR`, which tells the parameters from those of documents.
    private static let magic: UInt32 = 0x5256_4F43

    package init(kind: Int) { self.kind = kind }

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(Self.magic)
        wire.write(kind)
        return wire.bytes
    }

    /// Reads the bytes of ``encoded()``; nil for other bytes.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        let isMarked = wire.integer(UInt32.self) == Self.magic
        kind = wire.int()
        guard isMarked, wire.isComplete else { return nil }
    }
}

/// The work of a helper for documents, `vitrine-pdf` or `vitrine-video`. A worker with decoders also draws
/// frames of animations, by ``AnimationRenderer``.
///
/// Called on one thread. May keep a document and its source open between requests: requests of one document go to the
/// same helper as far as possible. Two sources are the same document if ``ByteSource/documentIdentity`` is equal.
package protocol DocumentRendering {
    /// Returns the description of a document, in the renderer's format.
    ///
    /// - Throws: ``ImageError``; the client fills in the input's name.
    func describe(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> [UInt8]

    /// Returns one page or frame, upright, not smaller than the request's target unless the document is smaller.
    func render(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> DecodedImage
}

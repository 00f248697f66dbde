/// An ``ImageError`` on its way from the worker, which does not know what the input is called.
package struct WorkerFailure: Error, Sendable, Hashable {
    /// Which case it is.
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
        // Registered decoders do not run in workers.
        case .decoderFailed: self.init(kind: .unsupported, reason: error.reason)
        case .encodingFailed(_, let reason): self.init(kind: .encodingFailed, reason: reason)
        }
    }

    package init(from wire: inout WireReader) {
        kind = wire.enumeration(Kind.self, or: .workerFailed)
        reason = wire.text()
        limit = ImageLimits.Kind(rawValue: wire.text()) ?? .memory
        actual = wire.int()
        allowed = wire.int()
    }

    package func write(to wire: inout WireWriter) {
        wire.write(kind.rawValue)
        wire.write(reason)
        wire.write(limit.rawValue)
        wire.write(actual)
        wire.write(allowed)
    }

    /// The error about `input`, as if it had been decoded here.
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

import Foundation
import VitrineImaging

/// What the command says on standard error.
enum Diagnostics {
    static func write(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }

    /// `path: reason`, in words a person can act on.
    static func describe(_ error: any Error) -> (input: String?, reason: String) {
        guard let error = error as? ImageError else {
            if error is CancellationError { return (nil, "cancelled") }
            return (nil, String(describing: error))
        }
        return (error.input, error.reason)
    }
}

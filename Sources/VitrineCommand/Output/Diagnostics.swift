import Foundation
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrineThumbnails

/// What the command says on standard error.
enum Diagnostics {
    static func write(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }

    /// `path: reason`, in words a person can act on.
    static func describe(_ error: any Error) -> (input: String?, reason: String) {
        switch error {
        case let error as ImageError: (error.input, error.reason)
        case let error as ThumbnailError: (error.source, error.reason)
        case let error as NetworkError: (error.url, error.reason)
        case let failure as InputFailure: (failure.name, failure.reason)
        case is CancellationError: (nil, "cancelled")
        default: (nil, String(describing: error))
        }
    }
}

// A stand-in for the photo library: one image for all assets, at the requested size, filled as Photos does.
@_exported import Foundation
@_exported import UIKit

public let PHImageErrorKey = "PHImageErrorKey"
public typealias PHImageRequestID = Int32

public final class PHAsset: NSObject, @unchecked Sendable {
    public let localIdentifier: String
    public let modificationDate: Date?
    public let (pixelWidth, pixelHeight): (Int, Int)
    /// For tests: nil for an asset that fails.
    public let stubPicture: ((CGSize) -> UIImage?)?

    public init(
        stub identifier: String, width: Int, height: Int, modified: Date? = nil, picture: ((CGSize) -> UIImage?)?
    ) {
        (localIdentifier, modificationDate, pixelWidth, pixelHeight) = (identifier, modified, width, height)
        stubPicture = picture
    }
}

public enum PHImageContentMode: Int, Sendable { case aspectFit, aspectFill }
public enum PHImageRequestOptionsVersion: Int, Sendable { case current, unadjusted, original }
public enum PHImageRequestOptionsDeliveryMode: Int, Sendable { case opportunistic, highQualityFormat, fastFormat }
public enum PHImageRequestOptionsResizeMode: Int, Sendable { case none, fast, exact }

public final class PHImageRequestOptions: NSObject {
    public var isSynchronous = false
    public var isNetworkAccessAllowed = false
    public var version = PHImageRequestOptionsVersion.current
    public var deliveryMode = PHImageRequestOptionsDeliveryMode.opportunistic
    public var resizeMode = PHImageRequestOptionsResizeMode.fast
}

public struct StubPhotosError: Error {}

open class PHImageManager: NSObject {
    nonisolated(unsafe) private static let shared = PHImageManager()
    open class func `default`() -> PHImageManager { shared }

    @discardableResult
    open func requestImage(
        for asset: PHAsset, targetSize: CGSize, contentMode: PHImageContentMode, options: PHImageRequestOptions?,
        resultHandler: @escaping (UIImage?, [AnyHashable: Any]?) -> Void
    ) -> PHImageRequestID {
        precondition(options?.isSynchronous == true, "the answer comes within the call")
        let picture = asset.stubPicture.flatMap { $0(targetSize) }
        resultHandler(picture, picture == nil ? [PHImageErrorKey: StubPhotosError()] : nil)
        return 1
    }

    open func cancelImageRequest(_ number: PHImageRequestID) {}
}

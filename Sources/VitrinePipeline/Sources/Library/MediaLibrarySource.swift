import VitrineCore
import VitrineImaging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A photo or video of a ``MediaLibrary`` as a source of images.
///
/// Photos are read by ``ImageFileSource``, with the preview that the camera embedded. Videos have
/// their poster, see ``VideoFrameSource``. Calls block: make them from a thread that may block.
package struct MediaLibrarySource: FileBackedSource, BlockingImageSource {
    /// The photo or video.
    package let asset: MediaAsset
    /// Identifies the asset instead of its file.
    package var identifier: CacheKey?
    /// The second of a video that is shown. Default nil: its poster.
    package var second: Double?
    private let workers: WorkerPool

    /// The source of an asset.
    package init(_ asset: MediaAsset) { self.init(asset, workers: VideoWorkers.shared) }

    /// A source whose frames are taken by other workers, for tests.
    package init(_ asset: MediaAsset, workers: WorkerPool) {
        self.asset = asset
        self.workers = workers
    }

    private var source: any FileBackedSource & BlockingImageSource {
        switch asset.kind {
        case .photo: ImageFileSource(path: asset.path)
        case .video: video
        }
    }

    private var video: VideoFrameSource {
        VideoFrameSource(.file(asset.path), at: second.map { .second($0) } ?? .poster, workers: workers)
    }

    /// The file's identity, and the frame.
    package func identity(_ lookup: FileIdentity.Lookup) throws(ImagePipelineError) -> CacheKey {
        if let identifier { return identifier }
        return try source.identity(lookup)
    }

    package func preview(_ request: RenderRequest) throws -> PixelImage? { try source.preview(request) }

    package func image(_ request: RenderRequest) throws -> PixelImage { try source.image(request) }

    package func images(_ requests: [RenderRequest]) throws -> [PixelImage] { try source.images(requests) }
}

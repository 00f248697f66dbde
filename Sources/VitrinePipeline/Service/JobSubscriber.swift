import VitrineCache
import VitrineCore
import VitrineImaging

/// What a job has made.
struct Made: Sendable {
    /// nil for one that nobody wants to see and that is on disk.
    let image: Image?
    let origin: Origin
}

/// An image of the bytes received so far.
struct JobPreview: Sendable {
    let image: Image
    /// Counts the previews of a job from 1.
    let number: Int
}

/// Who waits for a job: a request, or a precaching.
protocol JobSubscriber: AnyObject, Sendable {
    var priority: Priority { get }
    var executionPriority: ExecutionPriority { get }
    var cacheLevels: CacheLevels { get }
    /// Whether the picture itself is wanted, not only that it is on disk.
    var wantsImage: Bool { get }
    /// Whether previews may be wanted, so that a transfer keeps its bytes for them.
    var isProgressive: Bool { get }
    /// Whether previews are wanted now.
    var wantsPreviews: Bool { get }

    /// The source is at work. Must not block, nor call the service.
    func markRunning()

    /// The bytes received so far gave an image.
    func previewDidArrive(_ preview: JobPreview)

    /// Called once, unless the subscriber left.
    func jobDidEnd(_ result: Result<Made, ImagePipelineError>)
}

extension ImageTask: JobSubscriber {
    var wantsImage: Bool { true }
    var isProgressive: Bool { request.isProgressive }

    func jobDidEnd(_ result: Result<Made, ImagePipelineError>) {
        switch result {
        case .success(let made):
            guard let image = made.image else { return }
            finish(.success(image), from: made.origin)
        case .failure(let error): finish(.failure(error))
        }
    }
}

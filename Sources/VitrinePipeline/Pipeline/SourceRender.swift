import VitrineCore
import VitrineImaging

/// One call of a source for all that is wanted from it, as steps that a thread or a task carries out.
///
/// The first step asks for all images together. If one of several requests cannot be met, that is no reason to fail the
/// others: each is then asked for alone.
struct SourceRender: Sendable {
    /// The results of a call.
    struct Results: Sendable {
        let work: Work
        let results: [Result<PixelImage, ImagePipelineError>]

        /// Whether the source's bytes are no image, for every request.
        var areUndecodable: Bool {
            !results.isEmpty && results.allSatisfy { result in
                if case .failure(.damaged) = result { return true }
                if case .failure(.unsupported) = result { return true }
                return false
            }
        }
    }

    private enum Step {
        case together
        case alone(Int)
    }

    private let work: Work
    private let requests: [RenderRequest]
    private var step: Step?
    /// The images of the source, before they are processed.
    private var images: [Result<PixelImage, ImagePipelineError>] = []

    /// Creates the call for the parts of a work; one without parts makes no call.
    init(_ work: Work, limits: ImageLimits) {
        self.work = work
        requests = work.parts.map { $0.spec.render(limits: limits, cancellation: work.cancellation) }
        step = requests.isEmpty ? nil : .together
    }

    /// Calls a source that blocks.
    mutating func run(calling source: any BlockingImageSource) {
        while let step {
            let images = Result {
                switch step {
                case .together: try source.images(requests)
                case .alone(let index): [try source.image(requests[index])]
                }
            }
            receive(images, of: step)
        }
    }

    /// Returns the call with the images of a source that does not block.
    func run(asking source: any ImageSource) async -> SourceRender {
        var render = self
        while let step = render.step {
            let images: Result<[PixelImage], any Error>
            do {
                switch step {
                case .together: images = .success(try await source.images(requests))
                case .alone(let index): images = .success([try await source.image(requests[index])])
                }
            } catch {
                images = .failure(error)
            }
            render.receive(images, of: step)
        }
        return render
    }

    /// Returns the results: the images with the processors of their requests applied. May take long.
    func results() -> Results {
        Results(
            work: work,
            results: zip(work.parts, images).map { part, image in
                image.flatMap { image in processed(image, by: part.spec.processors) }
            })
    }

    private mutating func receive(_ result: Result<[PixelImage], any Error>, of step: Step) {
        switch step {
        case .together:
            switch checked(result, count: requests.count) {
            case .success(let all): images = all.map { .success($0) }
            case .failure(let error) where requests.count > 1 && error.concernsRequest: return self.step = .alone(0)
            case .failure(let error): images = Array(repeating: .failure(error), count: requests.count)
            }
            self.step = nil
        case .alone(let index):
            images.append(checked(result, count: 1).map { $0[0] })
            self.step = index + 1 < requests.count ? .alone(index + 1) : nil
        }
    }

    /// The images of a step, if they are as many as it asked for.
    private func checked(
        _ result: Result<[PixelImage], any Error>, count: Int
    ) -> Result<[PixelImage], ImagePipelineError> {
        let name = work.identity.sourceName
        do {
            let images = try result.get()
            guard images.count == count else { return .failure(.underlying(source: name, error: WrongResultCount())) }
            return .success(images)
        } catch {
            let error = ImagePipelineError(thrown: error, source: name)
            // A cancellation without a request for it is a failure.
            guard error.isCancellation, !work.cancellation.isCancelled else { return .failure(error) }
            return .failure(.underlying(source: name, error: CancellationError()))
        }
    }

    private func processed(
        _ image: PixelImage, by processors: [ImageProcessor]
    ) -> Result<PixelImage, ImagePipelineError> {
        guard !processors.isEmpty else { return .success(image) }
        do throws(ImageError) {
            return .success(try image.processed(by: processors))
        } catch {
            return .failure(ImagePipelineError(error, source: work.identity.sourceName))
        }
    }
}

/// A source gave another number of images than it was asked for.
struct WrongResultCount: Error, CustomStringConvertible {
    var description: String { "the source gave another number of thumbnails than it was asked for" }
}

extension ImagePipelineError {
    /// Whether another size of the same source may do better.
    fileprivate var concernsRequest: Bool {
        switch self {
        case .limitExceeded(_, .outputSide, _, _), .underlying(_, ImageError.invalidRequest): true
        default: false
        }
    }
}

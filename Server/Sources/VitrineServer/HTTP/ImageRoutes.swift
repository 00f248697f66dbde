public import Hummingbird
public import HummingbirdCore
public import NIOCore

/// Answers requests below a mount: ``ImageRoutes``, and in tests a service with a backend of theirs.
package protocol ImageAnswering: Sendable {
    /// - Parameter mountLength: The bytes of the path that belong to the mount.
    func respond<Context: RequestContext>(
        to request: Request, mountLength: Int, context: Context
    ) async -> Response
}

/// Answers all requests with images: for an application that does nothing else.
///
/// ```swift
/// let application = Application(responder: ImageResponder(images))
/// ```
public struct ImageResponder<Context: RequestContext>: HTTPResponder {
    private let images: any ImageAnswering

    /// Creates a responder.
    public init(_ images: ImageRoutes, context: Context.Type = ImageRequestContext.self) { self.images = images }

    package init(_ images: any ImageAnswering, context: Context.Type = ImageRequestContext.self) {
        self.images = images
    }

    /// Answers a request.
    public func respond(to request: Request, context: Context) async -> Response {
        await images.respond(to: request, mountLength: 0, context: context)
    }
}

/// Answers the requests below a path with images and passes on all others.
package struct ImageMiddleware<Context: RequestContext>: RouterMiddleware {
    private let images: any ImageAnswering
    /// Without the slash at its end.
    private let mount: String

    /// - Parameter path: The path of the mount, for example `/images`. `/` answers everything.
    package init(_ images: any ImageAnswering, at path: String) {
        self.images = images
        var path = path.hasPrefix("/") ? path : "/" + path
        while path.hasSuffix("/") { path.removeLast() }
        mount = path
    }

    package func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        let length = mount.utf8.count
        if length > 0 {
            guard let path = request.head.path, path.utf8.starts(with: mount.utf8) else {
                return try await next(request, context)
            }
            let end = path.utf8.index(path.startIndex, offsetBy: length)
            guard end == path.endIndex || path.utf8[end] == 0x2F || path.utf8[end] == 0x3F else {
                return try await next(request, context)
            }
        }
        return await images.respond(to: request, mountLength: length, context: context)
    }
}

extension Router {
    /// Answers the requests below a path with images.
    ///
    /// ```swift
    /// let router = Router(context: ImageRequestContext.self)
    /// router.addImages(images, at: "/images")
    /// ```
    ///
    /// Routes that were added before keep their paths. Routes that are added later are asked only for other paths.
    ///
    /// - Parameters:
    ///   - images: The images.
    ///   - path: For example `/images`. Default: `/`, all paths that no earlier route has.
    @discardableResult
    public func addImages(_ images: ImageRoutes, at path: String = "/") -> Self { add(images, at: path) }

    @discardableResult
    package func add(_ images: any ImageAnswering, at path: String) -> Self {
        add(middleware: ImageMiddleware<Context>(images, at: path))
    }
}

/// A context that knows its connection, so that work for a client that left is cancelled. With other contexts, it runs
/// to its end.
public protocol ConnectionRequestContext: RequestContext {
    /// The channel of the connection, or of the stream in HTTP/2.
    var channel: any Channel { get }
}

/// A context that knows its connection and the client's address.
public struct ImageRequestContext: ConnectionRequestContext, RemoteAddressRequestContext {
    /// The storage of Hummingbird.
    public var coreContext: CoreRequestContextStorage
    /// The channel of the connection, or of the stream in HTTP/2.
    public let channel: any Channel

    /// Creates the context of a request.
    public init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// The client's address; nil if the connection has ended.
    public var remoteAddress: SocketAddress? { channel.remoteAddress }
}

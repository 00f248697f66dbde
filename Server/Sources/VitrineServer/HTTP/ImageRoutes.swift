public import Hummingbird
public import HummingbirdCore
public import NIOCore

/// Answers all requests with images: for an application that does nothing else.
///
/// ```swift
/// let application = Application(responder: ImageResponder(service, context: ImageRequestContext.self))
/// ```
public struct ImageResponder<Backend: ImageBackend, Context: RequestContext>: HTTPResponder {
    private let service: ImageService<Backend>

    public init(_ service: ImageService<Backend>, context: Context.Type = ImageRequestContext.self) {
        self.service = service
    }

    public func respond(to request: Request, context: Context) async -> Response {
        await service.respond(to: request, mountLength: 0, context: context)
    }
}

/// Answers the requests below a path with images and passes on all others.
public struct ImageMiddleware<Backend: ImageBackend, Context: RequestContext>: RouterMiddleware {
    private let service: ImageService<Backend>
    /// Without the slash at its end.
    private let mount: String

    /// - Parameter path: The path of the mount, for example `/images`. `/` answers everything.
    public init(_ service: ImageService<Backend>, at path: String = "/", context: Context.Type = Context.self) {
        self.service = service
        var path = path.hasPrefix("/") ? path : "/" + path
        while path.hasSuffix("/") { path.removeLast() }
        mount = path
    }

    public func handle(
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
        return await service.respond(to: request, mountLength: length, context: context)
    }
}

extension Router {
    /// Answers the requests below a path with images.
    ///
    /// Routes that were added before keep their paths. Routes that are added later are asked only for other paths.
    ///
    /// - Parameter path: For example `/images`. Default: `/`, all paths that no earlier route has.
    @discardableResult
    public func addImages<Backend: ImageBackend>(_ service: ImageService<Backend>, at path: String = "/") -> Self {
        add(middleware: ImageMiddleware<Backend, Context>(service, at: path))
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
    public var coreContext: CoreRequestContextStorage
    public let channel: any Channel

    public init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    public var remoteAddress: SocketAddress? { channel.remoteAddress }
}

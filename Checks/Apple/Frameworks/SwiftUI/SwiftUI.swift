// A stand-in for SwiftUI: a body compiles and can be inspected, but nothing renders.
@_exported import CoreGraphics
@_exported import Foundation

/// For tests: the size for geometry readers, and the results of the last inspection of a body.
@MainActor public enum StubPass {
    public static var size = CGSize.zero
    public static var images: [CGImage] = []
    public static var tasks: [(id: Any, action: @Sendable () async -> Void)] = []
    public static var disappearances: [() -> Void] = []
    nonisolated(unsafe) public static var animations: [Animation] = []

    /// Discards the last pass and inspects a view.
    public static func look(at view: some View) {
        (images, tasks, disappearances) = ([], [], [])
        _ = view.body
    }
}

@MainActor @preconcurrency public protocol View {
    associatedtype Body: View
    @ViewBuilder @MainActor @preconcurrency var body: Body { get }
}
extension Never: View { public var body: Never { fatalError("no view") } }
public protocol StubLeaf: View where Body == Never {}
extension StubLeaf { public var body: Never { fatalError("a leaf has no body") } }
public struct EmptyView: StubLeaf { public init() {} }
public struct StubModified<Content: View>: StubLeaf { let content: Content }
public struct StubEither<A: View, B: View>: StubLeaf {}
public struct Color: StubLeaf {
    public static let gray = Color()
}

@resultBuilder public enum ViewBuilder {
    public static func buildBlock() -> EmptyView { EmptyView() }
    public static func buildBlock<V: View>(_ view: V) -> V { view }
    public static func buildExpression<V: View>(_ view: V) -> V { view }
    public static func buildEither<A: View, B: View>(first: A) -> StubEither<A, B> { StubEither() }
    public static func buildEither<A: View, B: View>(second: B) -> StubEither<A, B> { StubEither() }
}

@propertyWrapper public struct State<Value> {
    final class Cell {
        var value: Value
        init(_ value: Value) { self.value = value }
    }
    let cell: Cell
    public init(wrappedValue: Value) { cell = Cell(wrappedValue) }
    public var wrappedValue: Value {
        get { cell.value }
        nonmutating set { cell.value = newValue }
    }
}
extension State where Value: ExpressibleByNilLiteral {
    public init() { self.init(wrappedValue: nil) }
}

public struct EnvironmentValues {
    public var displayScale: CGFloat = 2
    public var accessibilityReduceMotion: Bool { false }
}
@propertyWrapper public struct Environment<Value> {
    let path: KeyPath<EnvironmentValues, Value>
    public init(_ path: KeyPath<EnvironmentValues, Value>) { self.path = path }
    public var wrappedValue: Value { EnvironmentValues()[keyPath: path] }
}

public struct GeometryProxy { public let size: CGSize }
@MainActor public struct GeometryReader<Content: View>: StubLeaf {
    let content: Content
    public init(@ViewBuilder content: @escaping (GeometryProxy) -> Content) {
        self.content = content(GeometryProxy(size: StubPass.size))
    }
}
@MainActor public struct ZStack<Content: View>: StubLeaf {
    let content: Content
    public init(@ViewBuilder content: () -> Content) { self.content = content() }
}

public enum ContentMode: Hashable, Sendable { case fit, fill }
@MainActor public struct Image: StubLeaf {
    public init(decorative image: CGImage, scale: CGFloat) { StubPass.images.append(image) }
    public func resizable() -> Image { self }
}
public struct AnyTransition { nonisolated(unsafe) public static let opacity = AnyTransition() }
public struct Animation: Equatable, Sendable {
    public let duration: TimeInterval
    public static func easeIn(duration: TimeInterval) -> Animation { Animation(duration: duration) }
}
public func withAnimation<R>(_ animation: Animation? = nil, _ body: () throws -> R) rethrows -> R {
    if let animation { StubPass.animations.append(animation) }
    return try body()
}

extension View {
    public func aspectRatio(_ ratio: CGFloat? = nil, contentMode: ContentMode) -> some View {
        StubModified(content: self)
    }
    public func transition(_ transition: AnyTransition) -> some View { StubModified(content: self) }
    public func frame(width: CGFloat? = nil, height: CGFloat? = nil) -> some View { StubModified(content: self) }
    public func clipped() -> some View { StubModified(content: self) }
    public func onDisappear(perform action: (() -> Void)? = nil) -> some View {
        if let action { StubPass.disappearances.append(action) }
        return StubModified(content: self)
    }
    public func task<ID: Equatable>(
        id: ID, priority: TaskPriority = .userInitiated,
        @_inheritActorContext _ action: @escaping @Sendable () async -> Void
    ) -> some View {
        StubPass.tasks.append((id, action))
        return StubModified(content: self)
    }
}

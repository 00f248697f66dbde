#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Counts how deep values are nested on the present stack.
///
/// Structs and enums inside each other have a limit. Objects do not: a list of objects is as deep as it is long. Where
/// links between objects have used most of a stack, coding continues on a larger one.
struct Nesting {
    /// The levels on the present stack outside the innermost object.
    var outer = 0
    /// The levels after which the next object begins a new stack.
    var capacity: Int

    /// - Parameter limit: The largest number of structs and enums inside each other.
    init(limit: Int) { capacity = max(16, limit / 2) }

    /// Whether the next object needs a new stack.
    var isFull: Bool { outer > capacity }
}

/// A thread with a stack of its own, for recursion that the caller's stack cannot hold.
enum LargeStack {
    /// The levels of objects that a stack holds, besides the structs and enums in the last one.
    static let levels = 2048
    /// More than one level takes: 6 to 7 kB without optimization, about 2 kB with it. Only touched memory is used.
    private static let bytesPerLevel = 16_384

    private final class Body {
        let run: () -> Void

        init(_ run: @escaping () -> Void) { self.run = run }
    }

    /// Runs a closure on such a thread, and waits for it.
    ///
    /// - Parameters:
    ///   - limit: The largest number of structs and enums in the last object.
    ///   - body: The closure. It has the stack for ``levels`` levels and the limit.
    /// - Returns: false if the system allows no more threads. The closure did not run then.
    static func run(limit: Int, _ body: () -> Void) -> Bool {
        withoutActuallyEscaping(body) { runAndWait(for: Body($0), limit: limit) }
    }

    private static func runAndWait(for body: Body, limit: Int) -> Bool {
        var attributes = pthread_attr_t()
        guard pthread_attr_init(&attributes) == 0 else { return false }
        defer { pthread_attr_destroy(&attributes) }
        // A limit of any size is the caller's choice; the sum must not overflow.
        pthread_attr_setstacksize(&attributes, (levels + min(limit, 1 << 20)) * bytesPerLevel)
        let context = Unmanaged.passRetained(body)
        #if canImport(Darwin)
        var thread: pthread_t?
        let status = pthread_create(&thread, &attributes, { LargeStack.main($0) }, context.toOpaque())
        #else
        var thread = pthread_t()
        let status = pthread_create(&thread, &attributes, { $0.flatMap { LargeStack.main($0) } }, context.toOpaque())
        #endif
        guard status == 0 else {
            context.release()
            return false
        }
        #if canImport(Darwin)
        if let thread { pthread_join(thread, nil) }
        #else
        pthread_join(thread, nil)
        #endif
        return true
    }

    private static func main(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
        return nil
    }
}

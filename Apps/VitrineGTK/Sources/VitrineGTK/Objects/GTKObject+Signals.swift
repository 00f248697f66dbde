import CGTK

/// A closure in the `user_data` of a C function. All C functions that call closures are in this file.
private final class Handler<Body> {
    let body: Body
    init(_ body: Body) { self.body = body }

    static func body(_ data: UnsafeMutableRawPointer) -> Body {
        Unmanaged<Handler<Body>>.fromOpaque(data).takeUnretainedValue().body
    }
}

private func release(_ data: UnsafeMutableRawPointer?) {
    if let data { Unmanaged<AnyObject>.fromOpaque(data).release() }
}

extension GTKObject {
    /// Calls a closure at a signal without parameters.
    public func on(_ signal: String, _ body: @escaping @MainActor () -> Void) {
        let call: @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void = { _, data in
            nonisolated(unsafe) let data = data!
            MainActor.assumeIsolated { Handler<@MainActor () -> Void>.body(data)() }
        }
        connect(signal, call: unsafeBitCast(call, to: GCallback.self), body: body)
    }

    /// Calls a closure at a signal with a pointer as parameter, such as an item or a property specification.
    public func on(_ signal: String, _ body: @escaping @MainActor (UnsafeMutableRawPointer) -> Void) {
        typealias Call =
            @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void
        let call: Call = {
            nonisolated(unsafe) let (argument, data) = ($1!, $2!)
            MainActor.assumeIsolated { Handler<@MainActor (UnsafeMutableRawPointer) -> Void>.body(data)(argument) }
        }
        connect(signal, call: unsafeBitCast(call, to: GCallback.self), body: body)
    }

    /// Calls a closure at a signal with a number as parameter, such as `activate` of a list.
    public func onPosition(_ signal: String, _ body: @escaping @MainActor (Int) -> Void) {
        let call: @convention(c) (UnsafeMutableRawPointer?, guint, UnsafeMutableRawPointer?) -> Void = {
            let position = $1
            nonisolated(unsafe) let data = $2!
            MainActor.assumeIsolated { Handler<@MainActor (Int) -> Void>.body(data)(Int(position)) }
        }
        connect(signal, call: unsafeBitCast(call, to: GCallback.self), body: body)
    }

    /// Calls a closure at a signal whose handler can stop further handling, such as `close-request` of a window.
    public func onQuestion(_ signal: String, _ body: @escaping @MainActor () -> Bool) {
        let call: @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> gboolean = { _, data in
            nonisolated(unsafe) let data = data!
            return MainActor.assumeIsolated { Handler<@MainActor () -> Bool>.body(data)() ? 1 : 0 }
        }
        connect(signal, call: unsafeBitCast(call, to: GCallback.self), body: body)
    }

    /// Calls a closure when a key is pressed. It returns whether it handled the key. For a `GtkEventControllerKey`.
    public func onKey(_ body: @escaping @MainActor (_ key: UInt32) -> Bool) {
        typealias Body = @MainActor (UInt32) -> Bool
        typealias Call =
            @convention(c) (UnsafeMutableRawPointer?, guint, guint, guint, UnsafeMutableRawPointer?) -> gboolean
        let call: Call = {
            let key = $1
            nonisolated(unsafe) let data = $4!
            return MainActor.assumeIsolated { Handler<Body>.body(data)(key) ? 1 : 0 }
        }
        connect("key-pressed", call: unsafeBitCast(call, to: GCallback.self), body: body)
    }

    /// Calls a closure when the wheel turns or two fingers move. It returns whether it handled the event. For a
    /// `GtkEventControllerScroll`.
    ///
    /// - Parameter body: Takes the distances to the right and down, in notches of the wheel.
    public func onScroll(_ body: @escaping @MainActor (_ right: Double, _ down: Double) -> Bool) {
        typealias Body = @MainActor (Double, Double) -> Bool
        let call: @convention(c) (UnsafeMutableRawPointer?, Double, Double, UnsafeMutableRawPointer?) -> gboolean = {
            let (right, down) = ($1, $2)
            nonisolated(unsafe) let data = $3!
            return MainActor.assumeIsolated { Handler<Body>.body(data)(right, down) ? 1 : 0 }
        }
        connect("scroll", call: unsafeBitCast(call, to: GCallback.self), body: body)
    }

    /// Calls a closure with the answer to a dialog, such as `GTK_RESPONSE_ACCEPT`. For a `GtkNativeDialog`.
    public func onResponse(_ body: @escaping @MainActor (GtkResponseType) -> Void) {
        typealias Body = @MainActor (GtkResponseType) -> Void
        let call: @convention(c) (UnsafeMutableRawPointer?, gint, UnsafeMutableRawPointer?) -> Void = {
            let answer = GtkResponseType($1)
            nonisolated(unsafe) let data = $2!
            MainActor.assumeIsolated { Handler<Body>.body(data)(answer) }
        }
        connect("response", call: unsafeBitCast(call, to: GCallback.self), body: body)
    }

    /// Calls a closure with a dropped value. It returns whether it accepts the value. For a `GtkDropTarget`.
    public func onDrop(_ body: @escaping @MainActor (UnsafePointer<GValue>) -> Bool) {
        typealias Body = @MainActor (UnsafePointer<GValue>) -> Bool
        let call: @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<GValue>?, Double, Double,
            UnsafeMutableRawPointer?) -> gboolean = {
            nonisolated(unsafe) let (value, data) = ($1!, $4!)
            return MainActor.assumeIsolated { Handler<Body>.body(data)(value) ? 1 : 0 }
        }
        connect("drop", call: unsafeBitCast(call, to: GCallback.self), body: body)
    }

    /// Calls a closure at the start of a drag. For a `GtkDragSource`.
    ///
    /// - Parameter body: Returns a `GdkContentProvider` with a reference; nil for no drag.
    public func onDragPrepare(_ body: @escaping @MainActor () -> OpaquePointer?) {
        typealias Body = @MainActor () -> OpaquePointer?
        let call: @convention(c) (UnsafeMutableRawPointer?, Double, Double, UnsafeMutableRawPointer?)
            -> UnsafeMutableRawPointer? = {
                nonisolated(unsafe) let data = $3!
                nonisolated(unsafe) var provider: UnsafeMutableRawPointer?
                MainActor.assumeIsolated { provider = Handler<Body>.body(data)().map { UnsafeMutableRawPointer($0) } }
                return provider
            }
        connect("prepare", call: unsafeBitCast(call, to: GCallback.self), body: body)
    }

    private func connect<Body>(_ signal: String, call: GCallback, body: Body) {
        g_signal_connect_data(
            raw, signal, call, Unmanaged.passRetained(Handler(body)).toOpaque(), { data, _ in release(data) },
            GConnectFlags(rawValue: 0))
    }
}

extension Widget {
    /// Calls a closure before each frame, until it returns that it is done or the widget is destroyed.
    ///
    /// - Parameter body: Takes the time of the frame, in microseconds.
    public func onFrame(_ body: @escaping @MainActor (_ time: Int64) -> Bool) {
        typealias Body = @MainActor (Int64) -> Bool
        gtk_widget_add_tick_callback(
            widget,
            { _, clock, data in
                nonisolated(unsafe) let (clock, data) = (clock, data!)
                return MainActor.assumeIsolated {
                    Handler<Body>.body(data)(Int64(gdk_frame_clock_get_frame_time(clock))) ? 1 : 0
                }
            }, Unmanaged.passRetained(Handler(body)).toOpaque(), { release($0) })
    }
}

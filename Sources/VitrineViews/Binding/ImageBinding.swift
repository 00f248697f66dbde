import VitrineCore

/// Fills one target: decides what it shows at which time, whatever comes late, fails or is not wanted any more.
///
/// ```swift
/// let binding = ImageBinding(picture)
/// binding.options.placeholder = tile
/// binding.set(.url(url, in: Shared.images)) { error in caption.text = "\(error)" }
/// ```
///
/// - **The latest wins** (R140). What was set before is cancelled, and whatever still comes of it is dropped. Setting
///   what is shown, or on its way, changes nothing.
/// - **Memory at once** (R141). What is in memory is shown before ``set(_:onSuccess:onFailure:)`` returns, without a
///   transition; what comes later fades in.
/// - **The target is held weakly.** When it has gone nothing is loaded for it any more. The binding is the target's to
///   keep: as a property, or wherever its toolkit lets objects hang.
@MainActor
public final class ImageBinding<Target: ImageTarget> {
    /// How far what was set has come.
    public enum State {
        /// Nothing is set.
        case empty
        /// It is on its way.
        case loading
        /// It is shown.
        case shown
        /// There is none to be had.
        case failed(any Error)
    }

    /// What is waited for.
    private struct Wait {
        var load: ContentLoad?
        var onSuccess: (@MainActor (Target.Value) -> Void)?
        var onFailure: (@MainActor (any Error) -> Void)?
    }

    /// What is filled; nil after it has gone.
    public private(set) weak var target: Target?
    /// How, from the next content on.
    public var options = ImageOptions<Target.Value>()
    /// How far it is.
    public private(set) var state = State.empty
    /// Whether the target can be seen. What is loaded for one that cannot gives way to all others (R146). Default true.
    public var isVisible = true {
        didSet { if isVisible != oldValue { wait.load?.setPriority(priority) } }
    }

    private var content: ImageContent<Target.Value>?
    private var identity: ContentIdentity?
    private var wait = Wait()
    /// What was set, once it is shown.
    private var shown: Target.Value?
    /// Whether a load is just beginning: what it reports now was there.
    private var isStarting = false
    /// Goes up with each content, so that what belongs to an earlier one is known.
    private var turn = 0

    public init(_ target: Target) { self.target = target }

    private var priority: Priority { isVisible ? options.priority : min(options.priority, .low) }

    /// Shows content.
    ///
    /// - Parameters:
    ///   - content: nil for none: then the placeholder is shown, or nothing.
    ///   - onSuccess: Called when it is shown, before this returns if it is in memory. Not called for content that
    ///     gives way to other content before.
    ///   - onFailure: Called if there is no image to be had.
    public func set(
        _ content: ImageContent<Target.Value>?, onSuccess: (@MainActor (Target.Value) -> Void)? = nil,
        onFailure: (@MainActor (any Error) -> Void)? = nil
    ) {
        guard let target else { return cancel() }
        guard let content else {
            cancel()
            target.show(options.placeholder, transition: .none)
            return
        }
        let prepared = content.prepare(target.targetGeometry)
        switch state {
        case .loading where prepared.identity == identity:
            (wait.onSuccess, wait.onFailure) = (onSuccess, onFailure)
            return
        case .shown where prepared.identity == identity && prepared.atHand() == nil:
            // Memory has let go of it; the target has not.
            if let shown { onSuccess?(shown) }
            return
        default: break
        }
        begin(content, prepared, Wait(onSuccess: onSuccess, onFailure: onFailure), in: target)
    }

    /// Loads what is set again if the target has another size than before; what is shown stays until it is there. Does
    /// nothing where nothing depends on the size.
    public func targetSizeDidChange() {
        guard let target, let content, let identity else { return }
        let prepared = content.prepare(target.targetGeometry)
        guard prepared.identity != identity, !prepared.identity.isUnique else { return }
        begin(content, prepared, wait, in: target, isOther: false)
    }

    /// Loads nothing more. What is shown stays, and no closure is called (R140).
    public func cancel() {
        turn += 1
        (content, identity, shown, wait) = (nil, nil, nil, Wait())
        state = .empty
    }

    /// Makes the target ready to show something else, as a cell that is used again (R146): cancels, and shows nothing.
    public func prepareForReuse() {
        cancel()
        target?.show(nil, transition: .none)
    }

    // MARK: Parts

    private func begin(
        _ content: ImageContent<Target.Value>, _ prepared: ImageContent<Target.Value>.Prepared, _ wait: Wait,
        in target: Target, isOther: Bool = true
    ) {
        turn += 1
        (self.content, identity, shown, self.wait) = (content, prepared.identity, nil, wait)
        // The load before ends here.
        self.wait.load = nil
        state = .loading
        if let found = prepared.atHand() {
            if found.isFinal { return show(found.value, in: target, transition: .none) }
            target.show(found.value, transition: .none)
        } else if isOther {
            if let placeholder = options.placeholder {
                target.show(placeholder, transition: .none)
            } else if options.missBehavior == .clear {
                target.show(nil, transition: .none)
            }
        }
        let turn = turn
        isStarting = true
        let load = prepared.start(priority) { [weak self] step in self?.take(step, of: turn) }
        isStarting = false
        // It may have ended already, or given way to something a closure has set.
        if turn == self.turn, case .loading = state { self.wait.load = load }
    }

    private func take(_ step: ContentStep<Target.Value>, of turn: Int) {
        guard turn == self.turn else { return }
        guard let target else { return cancel() }
        let transition = isStarting ? .none : options.transition
        switch step {
        case .interim(let value): target.show(value, transition: transition)
        case .done(.success(let value)): show(value, in: target, transition: transition)
        case .done(.failure(let error)):
            state = .failed(error)
            let onFailure = wait.onFailure
            wait = Wait()
            if let image = options.failureImage { target.show(image, transition: .none) }
            onFailure?(error)
        }
    }

    private func show(_ value: Target.Value, in target: Target, transition: ImageTransition) {
        target.show(value, transition: transition)
        state = .shown
        shown = value
        let onSuccess = wait.onSuccess
        wait = Wait()
        onSuccess?(value)
    }
}

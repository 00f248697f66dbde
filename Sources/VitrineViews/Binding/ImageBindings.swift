/// Something that shows several images, each in a slot of its own: a button with one for each state, and one behind it.
@MainActor
public protocol MultiImageTarget<Value>: AnyObject {
    associatedtype Value: Sendable
    /// What tells the slots apart.
    associatedtype Slot: Hashable & Sendable

    /// Shows an image in a slot; nil for nothing.
    func show(_ image: Value?, in slot: Slot, transition: ImageTransition)

    /// What images are brought to that a slot shows; nil for what they are. The default is nil.
    func targetGeometry(of slot: Slot) -> TargetGeometry?
}

extension MultiImageTarget {
    public func targetGeometry(of slot: Slot) -> TargetGeometry? { nil }
}

/// Fills the slots of one target, each by an ``ImageBinding`` of its own: what one loads does not touch the others
/// (R143).
///
/// ```swift
/// let slots = ImageBindings(button)
/// slots[.image(.normal)].set(.url(icon, in: Shared.images))
/// slots[.background(.highlighted)].set(.url(glow, in: Shared.images))
/// ```
@MainActor
public final class ImageBindings<Target: MultiImageTarget> {
    /// One slot as a target.
    public final class SlotTarget: ImageTarget {
        private weak var target: Target?
        /// Which one.
        public let slot: Target.Slot

        fileprivate init(_ target: Target?, _ slot: Target.Slot) {
            self.target = target
            self.slot = slot
        }

        public func show(_ image: Target.Value?, transition: ImageTransition) {
            target?.show(image, in: slot, transition: transition)
        }

        public var targetGeometry: TargetGeometry? { target?.targetGeometry(of: slot) }
    }

    /// Whose slots they are; nil after it has gone.
    public private(set) weak var target: Target?
    private var bindings: [Target.Slot: (target: SlotTarget, binding: ImageBinding<SlotTarget>)] = [:]

    public init(_ target: Target) { self.target = target }

    /// The binding of a slot, made when it is first asked for.
    public subscript(slot: Target.Slot) -> ImageBinding<SlotTarget> {
        if let known = bindings[slot] { return known.binding }
        let target = SlotTarget(target, slot)
        let binding = ImageBinding(target)
        bindings[slot] = (target, binding)
        return binding
    }

    /// Loads nothing more, for no slot.
    public func cancel() {
        for (_, binding) in bindings.values { binding.cancel() }
    }
}

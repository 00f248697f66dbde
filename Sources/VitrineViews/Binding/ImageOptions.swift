public import VitrineCore

/// How a target is filled.
public struct ImageOptions<Value: Sendable>: Sendable {
    /// What a target shows while the image is on its way.
    public enum MissBehavior: Sendable, Hashable {
        /// What it showed before, unless there is a placeholder.
        case keep
        /// Nothing, unless there is a placeholder.
        case clear
    }

    /// Shown until the image is there; not at all if it is in memory. Default nil: see ``missBehavior``.
    public var placeholder: Value?
    /// Shown if there is no image to be had; nil, the default, for what is shown already.
    public var failureImage: Value?
    /// What is shown without a placeholder. Default ``MissBehavior/keep``.
    public var missBehavior = MissBehavior.keep
    /// How an image appears that was not there at once. What is in memory, placeholders and failure images appear
    /// without. Default ``ImageTransition/standard``.
    public var transition = ImageTransition.standard
    /// How urgent it is while the target is visible.
    public var priority = Priority.normal

    public init() {}
}

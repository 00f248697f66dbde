extension ImageContent {
    /// The image for a target of a certain size, if it is in memory and nothing better will come. Loads nothing, and
    /// never blocks: for targets that load only when they are seen, but show at once what is there.
    ///
    /// - Parameter box: The target's; nil for one that takes images as they are.
    @MainActor
    public func inMemory(for box: TargetGeometry?) -> Value? {
        guard let found = prepare(box).atHand(), found.isFinal else { return nil }
        return found.value
    }
}

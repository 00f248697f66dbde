#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache

extension RetainSet {
    /// Registers a URL to keep, under the key a resource cache has it (R55).
    public func preserve(_ url: URL, of resources: ObservedCache<Value>) { preserve(resources.key(for: url)) }
}

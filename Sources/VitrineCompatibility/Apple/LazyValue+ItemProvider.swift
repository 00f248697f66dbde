#if canImport(UIKit) || canImport(AppKit)
public import Foundation
public import VitrineCore
public import VitrineImaging

/// Item providers for drag and drop and for sharing. The value is loaded when the receiver requests it.
///
/// ```swift
/// func collectionView(_ view: UICollectionView, itemsForBeginning session: any UIDragSession, at path: IndexPath)
///     -> [UIDragItem]
/// {
///     guard let picture = SharedCaches.imageURLs.lazyValue(for: urls[path.item]) else { return [] }
///     return [UIDragItem(itemProvider: picture.itemProvider(named: "lake"))]
/// }
/// ```
///
/// The receiver gets the error of a failed load. Type-checked, and run against stand-ins; not run on a device.
extension LazyValue where Value == VitrineImaging.PixelImage {
    /// Returns a provider of the image as PNG or JPEG. The receiver chooses.
    ///
    /// - Parameter name: The name of a file made from it, without an extension; nil lets the receiver choose.
    public func itemProvider(named name: String? = nil) -> NSItemProvider {
        let provider = NSItemProvider()
        provider.suggestedName = name
        provider.register("public.png", of: self) { try $0.encoded(as: .png) }
        provider.register("public.jpeg", of: self) { try $0.encoded(as: .jpeg(quality: Value.cacheQuality)) }
        return provider
    }
}

extension LazyValue where Value: CacheableValue {
    /// Returns a provider of the value's bytes.
    ///
    /// - Parameters:
    ///   - type: The uniform type identifier of the bytes, for example `public.json`.
    ///   - name: The name of a file made from it, without an extension; nil lets the receiver choose.
    public func itemProvider(ofType type: String, named name: String? = nil) -> NSItemProvider {
        let provider = NSItemProvider()
        provider.suggestedName = name
        provider.register(type, of: self) { try $0.cacheBytes() }
        return provider
    }
}

extension NSItemProvider {
    /// Offers one form of a value.
    fileprivate func register<Value>(
        _ type: String, of value: LazyValue<Value>, encode: @escaping @Sendable (Value) throws -> [UInt8]
    ) {
        registerDataRepresentation(forTypeIdentifier: type, visibility: .all) { completion in
            let progress = Progress(totalUnitCount: 1)
            let task = Task(priority: .userInitiated) {
                let result: Result<Data, any Error>
                do {
                    let found = try await value.value
                    result = .success(Data(try await BlockingExecutor.shared.run { try encode(found) }))
                } catch {
                    result = .failure(error)
                }
                progress.completedUnitCount = 1
                switch result {
                case .success(let data): completion(data, nil)
                case .failure(let error): completion(nil, error)
                }
            }
            progress.cancellationHandler = { task.cancel() }
            return progress
        }
    }
}
#endif

public import VitrineCore

/// Where a store's directory lies.
public enum StoreLocation: Sendable, Hashable {
    /// The user's own documents; see `Directories.documents`.
    case documents
    /// What can be made again; see `Directories.caches`. Nothing is evicted there by Vitrine, but users and systems
    /// empty it.
    case caches
    /// What the user would miss and does not look at; see `Directories.data`.
    case data
    /// Any directory.
    case root(String)

    /// The directory, of the system's directories.
    public func directory(in directories: Directories = .current) -> String {
        switch self {
        case .documents: directories.documents
        case .caches: directories.caches
        case .data: directories.data
        case .root(let path): path
        }
    }
}

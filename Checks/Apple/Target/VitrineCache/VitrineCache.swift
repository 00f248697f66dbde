// What of this module the adapters use.
public import VitrineCore

public enum CacheError: Error { case notFound(key: CacheKey) }

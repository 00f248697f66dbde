// The parts of this module that the adapters use.
public import VitrineCore

public enum CacheError: Error { case notFound(key: CacheKey) }

struct Page { struct ID: Hashable, Sendable {} }

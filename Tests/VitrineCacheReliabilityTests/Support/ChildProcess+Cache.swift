import TestSupport

extension ChildProcess {
    /// Where the program that uses a cache is.
    static let executable = path(of: "CacheChild")

    /// Starts `CacheChild` with arguments.
    convenience init(_ arguments: [String], wrapper: [String] = [], holdsInput: Bool = false) throws {
        try self.init(executable: "CacheChild", arguments, wrapper: wrapper, holdsInput: holdsInput)
    }
}

/// A change in a store, after it was committed.
public enum ObjectChange: Sendable, Equatable {
    /// A value was stored.
    case put(key: String, group: ObjectGroup)
    /// A value was removed, if there was one.
    case removed(key: String, group: ObjectGroup)
    /// A group was removed with all below it.
    case removedGroup(ObjectGroup)
    /// Another process, or another store on the same file, changed something.
    case elsewhere

    /// Whether it concerns a group or one below it.
    func concerns(_ observed: ObjectGroup) -> Bool {
        switch self {
        case .put(_, let group), .removed(_, let group): observed.contains(group)
        case .removedGroup(let group): observed.contains(group) || group.contains(observed)
        case .elsewhere: true
        }
    }
}

/// What happens while a group is brought up to date.
public enum ObjectMigrationEvent: Sendable, Equatable {
    /// So many of the objects that were stored by older versions have been looked at.
    case progress(done: Int, total: Int)
    /// An object could not be brought up to date, and is as it was.
    case failed(key: String, PersistenceError)
}

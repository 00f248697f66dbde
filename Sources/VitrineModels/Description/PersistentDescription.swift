extension PersistentValue {
    /// The stored form as JSON for people: a type's properties under `*Type`, those of its superclass inside under
    /// `**Superclass`, those of extensions as `(Category)name`. An object that occurs again is named only, so cycles
    /// end.
    public var persistentDescription: String {
        let coder = PersistentCoder()
        do throws(PersistenceError) {
            return try coder.tree(of: coder.encode(self)).persistentDescription
        } catch {
            return "<\(Self.self): \(error)>"
        }
    }
}

extension PersistentObject {
    /// ``PersistentValue/persistentDescription`` on lines of its own, as the first one is mostly behind other text
    /// (R136).
    public var description: String { "\n" + persistentDescription }
}

extension MigrationValue {
    /// The data as JSON for people, as ``PersistentValue/persistentDescription`` has it.
    public var persistentDescription: String {
        var description = TreeDescription()
        description.add(self)
        return description.json.text
    }
}

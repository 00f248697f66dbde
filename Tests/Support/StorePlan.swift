/// What a process does to a store, so that a test knows what may be there when it is killed.
package struct StorePlan {
    package enum Step: Sendable {
        case save(String)
        case rename(String, to: String)
        case delete(String)
    }

    private var random: SeededGenerator

    package init(seed: UInt64) { random = SeededGenerator(seed) }

    package mutating func next() -> Step {
        let name = Self.name(by: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0: return .delete(name)
        case 1, 2: return .rename(name, to: Self.name(by: &random))
        default: return .save(name)
        }
    }

    private static func name(by random: inout SeededGenerator) -> String {
        "p\(Int.random(in: 0..<6, using: &random)).png"
    }

    /// What the names hold after a step: the number of the step that saved it.
    package static func apply(_ step: Step, _ number: Int, to state: inout [String: Int]) {
        switch step {
        case .save(let name): state[name] = number
        case .rename(let name, let newName):
            guard name != newName, let saved = state.removeValue(forKey: name) else { return }
            state[newName] = saved
        case .delete(let name): state[name] = nil
        }
    }
}

/// What a process does to a store of objects, so that a test knows what may be there when it is killed.
package struct ObjectPlan {
    /// Where an object is.
    package struct Place: Hashable, Sendable {
        package let group: String
        package let key: String

        package init(group: String, key: String) { (self.group, self.key) = (group, key) }
    }

    package enum Step: Sendable {
        case put(Place)
        /// All of them together or none.
        case batch([Place])
        case remove(Place)
        /// The group with all groups below it.
        case removeGroup(String)
    }

    /// What the places hold: the number of the step that put it.
    package typealias State = [Place: Int]

    /// The groups, outer before inner.
    package static let groups = ["a", "a/b", "c"]

    private var random: SeededGenerator

    package init(seed: UInt64) { random = SeededGenerator(seed) }

    package mutating func next() -> Step {
        switch Int.random(in: 0..<20, using: &random) {
        case 0: .removeGroup(Self.groups.randomElement(using: &random) ?? "a")
        case 1...3: .remove(place())
        case 4...9: .batch((0..<Int.random(in: 2...9, using: &random)).map { _ in place() })
        default: .put(place())
        }
    }

    private mutating func place() -> Place {
        let key = "k\(Int.random(in: 0..<6, using: &random))"
        return Place(group: Self.groups.randomElement(using: &random) ?? "a", key: key)
    }

    package static func apply(_ step: Step, _ number: Int, to state: inout State) {
        switch step {
        case .put(let place): state[place] = number
        case .batch(let places): for place in places { state[place] = number }
        case .remove(let place): state[place] = nil
        case .removeGroup(let group):
            state = state.filter { $0.key.group != group && !$0.key.group.hasPrefix(group + "/") }
        }
    }

    /// What an object holds beside its number: from nothing to more than a page.
    package static func text(_ number: Int) -> String {
        String(repeating: "\(number % 10)", count: number * 389 % 6000)
    }
}

/// The states that follow from a plan, made as far as they are asked for.
package struct ObjectHistory {
    private var plan: ObjectPlan
    private var states: [ObjectPlan.State] = [[:]]

    package init(seed: UInt64) { plan = ObjectPlan(seed: seed) }

    /// What there is after so many steps.
    package mutating func state(after steps: Int) -> ObjectPlan.State {
        while states.count <= steps {
            var state = states[states.count - 1]
            ObjectPlan.apply(plan.next(), states.count - 1, to: &state)
            states.append(state)
        }
        return states[steps]
    }
}

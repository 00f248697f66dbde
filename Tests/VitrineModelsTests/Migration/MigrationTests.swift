import Foundation
import Logging
import ModelsSamples
import TestSupport
import Testing
import VitrineModels

/// One build of a program with a type `Note`, which has the given properties.
private protocol NoteBuild: DatedBuild {}
extension NoteBuild {
    static var name: String { "Note" }
}

private enum First: NoteBuild {
    static var version: SchemaVersion { "1.0" }
    static var properties: [DatedProperty] { [DatedProperty(name: "a"), DatedProperty(name: "b")] }
}

private enum Second: NoteBuild {
    static var version: SchemaVersion { "1.1" }
    static var properties: [DatedProperty] { [DatedProperty(name: "sum")] }
    static var steps: [MigrationStep] { [step] }
    static var step: MigrationStep {
        MigrationStep(to: "1.1") { data in
            data.set("sum", to: try (data.value("a") ?? 0) + (data.value("b") ?? 0))
        }
    }
}

private enum Third: NoteBuild {
    static var version: SchemaVersion { "2.0" }
    static var properties: [DatedProperty] {
        [DatedProperty(name: "double"), DatedProperty(name: "late", defaultValue: 9)]
    }
    static var steps: [MigrationStep] {
        [
            // Told in any order, run in that of time.
            MigrationStep(to: "2.0") { try $0.convert("sum", to: "double") { (sum: Int) in sum * 2 } },
            Second.step,
        ]
    }
}

private enum FirstGrown: NoteBuild {
    static var version: SchemaVersion { "1.0" }
    static var properties: [DatedProperty] {
        [DatedProperty(name: "new", defaultValue: 5), DatedProperty(name: "b"), DatedProperty(name: "a")]
    }
}

private enum FirstChanged: NoteBuild {
    static var version: SchemaVersion { "1.0" }
    static var properties: [DatedProperty] { [DatedProperty(name: "a"), DatedProperty(name: "c")] }
}

private enum Aliased: NoteBuild {
    static var version: SchemaVersion { "1.0" }
    static var properties: [DatedProperty] {
        [DatedProperty(name: "x", aliases: ["old", "a"]), DatedProperty(name: "b")]
    }
}

private enum Failing: NoteBuild {
    static var version: SchemaVersion { "3.0" }
    static var properties: [DatedProperty] { [] }
    static var steps: [MigrationStep] {
        [MigrationStep(to: "3.0") { _ = try $0.value("a", as: Date.self) }]
    }
}

private enum GivingUp: NoteBuild {
    static var version: SchemaVersion { "3.0" }
    static var properties: [DatedProperty] { [] }
    static var steps: [MigrationStep] { [MigrationStep(to: "3.0") { _, _ in false }] }
}

private enum Renamed: DatedBuild {
    static var name: String { "Memo" }
    static var version: SchemaVersion { "1.0" }
    static var properties: [DatedProperty] { [DatedProperty(name: "a"), DatedProperty(name: "b")] }
    static var aliases: [String] { ["Note"] }
}

@Suite struct MigrationTests {
    private let written: Written

    init() throws { written = try Written(Dated<First>([1, 2])) }

    @Test func stepsRunInTheOrderOfTimeFromAnyVersion() throws {
        #expect(try written.read(as: Dated<Third>.self).values == [6, 9])
        #expect(try Written(Dated<Second>([4])).read(as: Dated<Third>.self).values == [8, 9])
    }

    @Test func stepsRunOnSeveralThreads() async throws {
        let coder = try written.coder()
        let bytes = written.bytes
        let sums = try await withThrowingTaskGroup(of: [Int].self) { group in
            for _ in 0..<64 { group.addTask { try coder.decode(Dated<Third>.self, from: bytes).values } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(sums == Array(repeating: [6, 9], count: 64))
    }

    @Test func addedAndReorderedPropertiesNeedNothing() throws {
        #expect(try written.read(as: Dated<FirstGrown>.self).values == [5, 2, 1])
    }

    @Test func aliasesKeepValues() throws {
        #expect(try written.read(as: Dated<Aliased>.self).values == [1, 2])
    }

    @Test func renamedTypesAreRecognised() throws {
        #expect(try written.read(as: Dated<Renamed>.self).values == [1, 2])
    }

    @Test func changeWithoutVersionNamesTheDifference() throws {
        #expect(
            throws: PersistenceError.changedWithoutVersion(
                type: "Note", version: "1.0",
                differences: ["b was removed", "c was added without a default value"])
        ) { try written.read(as: Dated<FirstChanged>.self) }
    }

    @Test func newerDataIsRefusedOrReadAsFarAsKnown() throws {
        let newer = try Written(Dated<Third>([6, 9]))
        #expect(throws: PersistenceError.newerThanCode(type: "Note", stored: "2", code: "1.1")) {
            try newer.read(as: Dated<Second>.self)
        }
        let grown = try Written(Dated<NewerGrown>([1, 2, 3]))
        #expect(try grown.read(as: Dated<First>.self, readsNewerData: true).values == [1, 2])
        #expect(throws: PersistenceError.missingValue(path: "Note.sum")) {
            try newer.read(as: Dated<Second>.self, readsNewerData: true)
        }
    }

    private enum NewerGrown: NoteBuild {
        static var version: SchemaVersion { "1.5" }
        static var properties: [DatedProperty] { First.properties + [DatedProperty(name: "more")] }
    }

    @Test func failureNamesTypeVersionsAndReason() throws {
        let error = #expect(throws: PersistenceError.self) { try written.read(as: Dated<Failing>.self) }
        guard case .migrationFailed("Note", "1.0", "3.0", let reason) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason.contains("Note.a should be Date and is Int"))
        #expect(throws: PersistenceError.migrationAbandoned(type: "Note", from: "1.0")) {
            try written.read(as: Dated<GivingUp>.self)
        }
        #expect(try written.read(as: Dated<First>.self).values == [1, 2])
    }

    @Test func aHookReceivesTheVersionAndCanAbandonData() throws {
        #expect(try written.read(as: Dated<Hooked>.self).values == [103])
        #expect(try Written(Dated<Second>([4])).read(as: Dated<Hooked>.self).values == [4])
        #expect(throws: PersistenceError.migrationAbandoned(type: "Note", from: "0.9")) {
            try Written(Dated<Oldest>([4])).read(as: Dated<Hooked>.self)
        }
    }

    private enum Hooked: NoteBuild {
        static var version: SchemaVersion { "2.0" }
        static var properties: [DatedProperty] { [DatedProperty(name: "sum")] }
        static var steps: [MigrationStep] { [MigrationStep(to: "2.0", migrate)] }
        static func migrate(_ old: MigrationData, from version: SchemaVersion) throws -> Bool {
            if version < "1.0" { return false }
            if version < "1.1" { old.set("sum", to: try 100 + (old.value("a") ?? 0) + (old.value("b") ?? 0)) }
            return true
        }
    }

    private enum Oldest: NoteBuild {
        static var version: SchemaVersion { "0.9" }
        static var properties: [DatedProperty] { [DatedProperty(name: "a")] }
    }

    @Test func unknownPropertiesAreDroppedAndRecorded() throws {
        let registry = TypeRegistry()
        #expect(
            try written.coder(registry).decode(Dated<Second>.self, from: written.bytes).values == [3])
        #expect(registry.droppedProperties(of: "Note") == ["a", "b"])
        // By the short cut on bytes as well.
        let other = TypeRegistry()
        #expect(try written.coder(other).decode(Dated<OnlyB>.self, from: written.bytes).values == [2])
        #expect(other.droppedProperties(of: "Note") == ["a"])
    }

    private struct RecordingHandler: LogHandler {
        let records: Recorder<(level: Logger.Level, metadata: Logger.Metadata)>
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { records.add((event.level, event.metadata ?? [:])) }
    }

    @Test func unknownPropertiesAreLoggedOnceForEachTypeAndName() throws {
        let records = Recorder<(level: Logger.Level, metadata: Logger.Metadata)>()
        let registry = TypeRegistry(log: Logger(label: "test") { _ in RecordingHandler(records: records) })
        for _ in 0..<3 {
            _ = try written.coder(registry).decode(Dated<Second>.self, from: written.bytes)
        }
        #expect(records.all.map(\.level) == [.debug])
        let metadata = records.all.first?.metadata ?? [:]
        #expect(metadata["type"]?.description == "Note")
        #expect(Set((metadata["names"]?.description ?? "").components(separatedBy: ", ")) == ["a", "b"])
    }

    private enum OnlyB: NoteBuild {
        static var version: SchemaVersion { "2.0" }
        static var properties: [DatedProperty] { [DatedProperty(name: "b")] }
    }

    @Test func aStepRunsOncePerObject() async throws {
        let directory = try TemporaryDirectory()
        func open() throws -> ObjectStore {
            try ObjectStore(
                at: directory.file("a.sqlite"), configuration: .init(coder: PersistentCoder(registry: TypeRegistry())))
        }
        try await open().put(Dated<First>([1, 2]), for: "k")
        let later = try open()
        for _ in 0..<5 {
            #expect(try later.object(Dated<Counted>.self, for: "k")?.values == [1])
            // Comes after what the read before has stored.
            try await later.put(0, for: "other")
        }
        #expect(Counted.runs.value == 1)
    }

    private enum Counted: NoteBuild {
        static let runs = Counter()
        static var version: SchemaVersion { "4.0" }
        static var properties: [DatedProperty] { [DatedProperty(name: "a")] }
        static var steps: [MigrationStep] { [MigrationStep(to: "4.0") { _ in runs.add(1) }] }
    }

    @Test func upgradedBytesAreCurrent() throws {
        let registry = TypeRegistry()
        let coder = try written.coder(registry)
        let upgraded = try coder.upgrade(written.bytes, of: Dated<Third>.self)
        #expect(upgraded == (try PersistentCoder(registry: registry).encode(Dated<Third>([6, 9]))))
    }

    @Test func oldBytesAreReadWithoutAnyType() throws {
        guard case .record(let data) = try written.tree() else {
            Issue.record("no record")
            return
        }
        #expect(data.typeName == "Note")
        #expect(data.version == "1.0")
        #expect(data.names == ["a", "b"])
        #expect(data.tree("b") == .int(2))
    }
}

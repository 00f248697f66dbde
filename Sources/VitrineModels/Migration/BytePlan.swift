/// A change of schema as a list of copies, omissions and insertions of bytes.
///
/// It handles added, removed and reordered properties of structs without objects, which need neither untyped data nor
/// migration steps.
package struct BytePlan: Sendable {
    /// The change of one struct.
    fileprivate final class Layout: Sendable {
        let name: String
        /// The old properties.
        let old: [RecordSchema.Property]
        let operations: [Operation]

        init(name: String, old: [RecordSchema.Property], operations: [Operation]) {
            (self.name, self.old, self.operations) = (name, old, operations)
        }
    }

    fileprivate indirect enum Operation: Sendable {
        /// The bytes of an old property.
        case copy(Int)
        /// An old property that is a struct which changed.
        case change(Int, Layout)
        /// An old property that is an array of structs which changed.
        case changeElements(Int, Layout)
        /// The new property's default.
        case insert(RecordSchema.Property)
    }

    private let schema: Schema
    private let layout: Layout

    /// Creates the plan for a change; nil if the change needs untyped data.
    init?(from old: Schema, to new: Schema) {
        guard case .record(let oldName) = old.root, case .record(let newName) = new.root, oldName == newName,
            let layout = Self.layout(oldName, old: old, new: new, depth: 0)
        else { return nil }
        schema = old
        self.layout = layout
    }

    /// The removed properties, by the names of their types.
    var dropped: [(type: String, names: [String])] { Self.dropped(layout) }

    private static func dropped(_ layout: Layout) -> [(type: String, names: [String])] {
        var taken: Set<Int> = []
        var dropped: [(type: String, names: [String])] = []
        for operation in layout.operations {
            switch operation {
            case .copy(let index): taken.insert(index)
            case .change(let index, let inner), .changeElements(let index, let inner):
                taken.insert(index)
                dropped += Self.dropped(inner)
            case .insert: break
            }
        }
        let names = layout.old.indices.filter { !taken.contains($0) }.map { layout.old[$0].name }
        return names.isEmpty ? dropped : dropped + [(layout.name, names)]
    }

    // MARK: Compiling

    private static let depthLimit = 32

    private static func layout(_ name: String, old: Schema, new: Schema, depth: Int) -> Layout? {
        guard depth < depthLimit, let before = old.records[name], let after = new.records[name],
            isSimple(before), isSimple(after), before.version <= after.version,
            !after.steps.contains(where: { $0.version > before.version }),
            before.version < after.version || before.differences(from: after).isEmpty
        else { return nil }
        var operations: [Operation] = []
        let names = before.early.map(\.name)
        let renamed = after.early.renamed(in: names)
        for property in after.early {
            if let index = renamed[property.name] ?? names.firstIndex(of: property.name) {
                guard before.early[index].type == property.type,
                    let operation = operation(index, type: property.type, old: old, new: new, depth: depth)
                else { return nil }
                operations.append(operation)
            } else {
                guard property.hasDefault || property.type.isOptional else { return nil }
                operations.append(.insert(property))
            }
        }
        let types = before.early.map(\.type)
        var visited: Set<String> = []
        guard !types.contains(where: { leadsToObject($0, schema: old, visited: &visited) }) else { return nil }
        return Layout(name: name, old: before.early, operations: operations)
    }

    private static func isSimple(_ record: RecordSchema) -> Bool {
        record.kind == .structure && !record.isExtensible && !record.isEmpty
    }

    private static func operation(
        _ index: Int, type: ValueType, old: Schema, new: Schema, depth: Int
    ) -> Operation? {
        var visited: Set<String> = []
        if isUnchanged(type, old: old, new: new, visited: &visited) { return .copy(index) }
        switch type {
        case .record(let name): return layout(name, old: old, new: new, depth: depth + 1).map { .change(index, $0) }
        case .array(.record(let name)):
            return layout(name, old: old, new: new, depth: depth + 1).map { .changeElements(index, $0) }
        default: return nil
        }
    }

    private static func isUnchanged(
        _ type: ValueType, old: Schema, new: Schema, visited: inout Set<String>
    ) -> Bool {
        switch type {
        case .optional(let type), .array(let type), .set(let type):
            return isUnchanged(type, old: old, new: new, visited: &visited)
        case .dictionary(let key, let value):
            return isUnchanged(key, old: old, new: new, visited: &visited)
                && isUnchanged(value, old: old, new: new, visited: &visited)
        case .object: return false
        case .record(let name):
            guard visited.insert(name).inserted else { return true }
            guard let before = old.records[name], let after = new.records[name], before.hasLayout(of: after),
                before.version <= after.version, !after.steps.contains(where: { $0.version > before.version })
            else { return false }
            let types = before.properties.map(\.type) + before.cases.flatMap { $0.payload.map(\.type) }
            return types.allSatisfy { isUnchanged($0, old: old, new: new, visited: &visited) }
        default: return true
        }
    }

    private static func leadsToObject(_ type: ValueType, schema: Schema, visited: inout Set<String>) -> Bool {
        switch type {
        case .optional(let type), .array(let type), .set(let type):
            return leadsToObject(type, schema: schema, visited: &visited)
        case .dictionary(let key, let value):
            return leadsToObject(key, schema: schema, visited: &visited)
                || leadsToObject(value, schema: schema, visited: &visited)
        case .object: return true
        case .record(let name):
            guard visited.insert(name).inserted else { return false }
            guard let record = schema.records[name], !record.isExtensible else { return true }
            let types = record.properties.map(\.type) + record.cases.flatMap { $0.payload.map(\.type) }
            return types.contains { leadsToObject($0, schema: schema, visited: &visited) }
        default: return false
        }
    }

    // MARK: Running

    /// Writes an old value in the form of the new schema.
    func run(
        _ body: UnsafeRawBufferPointer, registry: TypeRegistry, depthLimit: Int, to writer: inout BinaryWriter
    ) throws(PersistenceError) {
        var reader = BinaryReader(body, registry: registry, depthLimit: depthLimit)
        try change(layout, reader: &reader, writer: &writer)
        guard reader.remaining == 0 else { throw .malformed("\(reader.remaining) bytes after the value") }
    }

    private func change(
        _ layout: Layout, reader: inout BinaryReader, writer: inout BinaryWriter
    ) throws(PersistenceError) {
        try reader.enter()
        let bytes = reader.unread
        let start = reader.offset
        var ends: [Int] = []
        ends.reserveCapacity(layout.old.count)
        for property in layout.old {
            try skip(property.type, &reader)
            ends.append(reader.offset - start)
        }
        func part(_ index: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]])
        }
        for operation in layout.operations {
            switch operation {
            case .copy(let index): writer.write(bytes: part(index))
            case .insert(let property):
                if let writeDefault = property.writeDefault {
                    writeDefault(&writer)
                } else {
                    writer.write(byte: 0)
                }
            case .change(let index, let inner):
                var reader = BinaryReader(part(index), registry: reader.registry, depthLimit: reader.levels)
                try change(inner, reader: &reader, writer: &writer)
            case .changeElements(let index, let inner):
                var reader = BinaryReader(part(index), registry: reader.registry, depthLimit: reader.levels)
                let count = try reader.readCount()
                writer.write(unsigned: UInt64(count))
                for _ in 0..<count { try change(inner, reader: &reader, writer: &writer) }
            }
        }
        reader.leave()
    }

    private func skip(_ type: ValueType, _ reader: inout BinaryReader) throws(PersistenceError) {
        switch type {
        case .bool: _ = try reader.readByte()
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64: _ = try reader.readUnsigned()
        case .float: _ = try reader.take(4)
        case .double, .date: _ = try reader.take(8)
        case .uuid: _ = try reader.take(16)
        case .string, .data, .decimal: _ = try reader.readCounted()
        case .url:
            _ = try reader.readCounted()
            _ = try reader.readCounted()
        case .optional(let type): if try reader.readByte() != 0 { try skip(type, &reader) }
        case .array(let type), .set(let type):
            for _ in 0..<(try reader.readCount()) { try skip(type, &reader) }
        case .dictionary(let key, let value):
            for _ in 0..<(try reader.readCount()) {
                try skip(key, &reader)
                try skip(value, &reader)
            }
        case .record(let name): try skip(name, &reader)
        case .object: throw .malformed("unexpected object")
        }
    }

    private func skip(_ name: String, _ reader: inout BinaryReader) throws(PersistenceError) {
        guard let record = schema.records[name] else { throw .malformed("there is no record of \(name)") }
        try reader.enter()
        if record.kind == .enumeration {
            for part in try record.readCase(&reader).payload { try skip(part.type, &reader) }
        } else if record.isEmpty {
            _ = try reader.readByte()
        } else {
            for property in record.early { try skip(property.type, &reader) }
        }
        reader.leave()
    }
}

extension RecordSchema {
    /// Returns whether values have the same bytes under both records.
    fileprivate func hasLayout(of other: RecordSchema) -> Bool {
        kind == other.kind && superclass == other.superclass && isExtensible == other.isExtensible
            && cases == other.cases && Self.isSame(early, other.early) && Self.isSame(late, other.late)
    }

    private static func isSame(_ first: [Property], _ second: [Property]) -> Bool {
        first.count == second.count && zip(first, second).allSatisfy { $0.name == $1.name && $0.type == $1.type }
    }
}

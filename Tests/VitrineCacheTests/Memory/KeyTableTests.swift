import TestSupport
import Testing
import VitrineCache

struct KeyTableTests {
    @Test(arguments: [1, 7, 1 << 20] as [UInt64])
    func agreesWithADictionary(hashes: UInt64) {
        var random = SeededGenerator(hashes)
        var table = KeyTable()
        var model: [Int: UInt64] = [:]
        for _ in 0..<20_000 {
            let slot = Int(random.next() % 300)
            if let hash = model[slot] {
                let found = table.slot(forHash: hash) { $0 == slot }
                #expect(found == slot)
                if random.next() % 2 == 0 {
                    let first = table.remove(slot, hash: hash), second = table.remove(slot, hash: hash)
                    #expect(first && !second)
                    model[slot] = nil
                }
            } else {
                // Few different hashes: long chains and much shifting.
                let hash = random.next() % hashes
                let found = table.slot(forHash: hash) { $0 == slot }
                #expect(found == nil)
                table.insert(slot, hash: hash)
                model[slot] = hash
            }
        }
        let count = table.count
        #expect(count == model.count)
        for (slot, hash) in model {
            let found = table.slot(forHash: hash) { $0 == slot }
            #expect(found == slot)
        }
    }

    @Test func hashesThatCountUpSpread() {
        var table = KeyTable()
        var asked = 0
        for slot in 0..<10_000 { table.insert(slot, hash: UInt64(slot)) }
        for slot in 0..<10_000 {
            _ = table.slot(forHash: UInt64(slot)) { asked += 1; return $0 == slot }
        }
        #expect(asked < 10_100)
        let bytes = table.bytes
        #expect(bytes <= 10_000 * 22)
    }
}

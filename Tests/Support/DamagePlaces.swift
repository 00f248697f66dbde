/// Where tests damage a file: its ends, its page borders and places by chance.
package enum DamagePlaces {
    /// Offsets below `size`, ascending, without repetition; all of them in small files.
    ///
    /// - Parameter many: Forty by chance instead of eight.
    package static func places(size: Int, random: inout SeededGenerator, many: Bool = false) -> [Int] {
        guard size > 16 else { return Array(0..<size) }
        var places: Set<Int> = [0, 1, 15, size / 2, size - 1]
        if many {
            // The fields of an SQLite header (https://www.sqlite.org/fileformat.html#the_database_header) and pages.
            places.formUnion([16, 18, 19, 20, 24, 28, 32, 36, 44, 56, 92, 96, 100, 103, 105, 4096, 8192, 12_288])
        }
        for _ in 0..<(many ? 40 : 8) { places.insert(Int.random(in: 0..<size, using: &random)) }
        return places.filter { $0 < size }.sorted()
    }
}

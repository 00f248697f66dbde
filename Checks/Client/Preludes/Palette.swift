struct Palette {
    typealias Palette = Self
    var colors: [Int] = []
    init(parsing bytes: [UInt8]) throws {}
    func serialized() -> [UInt8] { [] }
}

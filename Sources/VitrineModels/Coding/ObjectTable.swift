/// Numbers objects by identity in the order in which they come: open addressing on their addresses.
///
/// It keeps the objects, so that no address is used again while it is known here.
struct ObjectTable {
    private var objects: [AnyObject] = []
    /// Addresses, 0 for free; its count is a power of two.
    private var addresses: [UInt] = []
    private var numbers: [UInt32] = []

    /// Gives an object the next number.
    ///
    /// - Returns: The number it has already; nil if it is new.
    mutating func insert(_ object: AnyObject) -> Int? {
        if objects.count * 2 >= addresses.count { grow() }
        let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
        let place = place(of: address)
        if addresses[place] != 0 { return Int(numbers[place]) }
        addresses[place] = address
        numbers[place] = UInt32(truncatingIfNeeded: objects.count)
        objects.append(object)
        return nil
    }

    private func place(of address: UInt) -> Int {
        let mask = addresses.count - 1
        // The low bits of addresses are always 0; the product's middle bits depend on all others.
        var place = Int(truncatingIfNeeded: (UInt64(address) >> 4) &* 0x9E37_79B9_7F4A_7C15 >> 32) & mask
        while addresses[place] != 0, addresses[place] != address { place = (place + 1) & mask }
        return place
    }

    private mutating func grow() {
        let size = max(16, addresses.count * 2)
        addresses = [UInt](repeating: 0, count: size)
        numbers = [UInt32](repeating: 0, count: size)
        for (number, object) in objects.enumerated() {
            let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
            let place = place(of: address)
            addresses[place] = address
            numbers[place] = UInt32(truncatingIfNeeded: number)
        }
    }
}

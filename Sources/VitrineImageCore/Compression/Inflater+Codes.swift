/// The inner loop: literals, lengths and distances.
extension Inflater {
    /// Why the inner loop stopped.
    private enum Stop {
        case limit, endOfBlock, needsInput, badCode, badDistance
    }

    /// Decodes until the block or the room for output ends.
    mutating func decodeCodes(_ limit: UnsafeMutablePointer<UInt8>) throws(InflateError) {
        while true {
            if inputEnd - inputNext < 32 { try fetch() }
            let stop: Stop
            if inputEnd - inputNext >= 32 {
                stop = run(limit, inputEnd - 31, careful: false)
            } else {
                // The last bytes of the source (or a source that gives a few at a time): symbol groups that use bits
                // behind the end are undone.
                stop = run(limit, inputEnd, careful: true)
                if stop == .needsInput && inputHasEnded { throw .truncated }
            }
            switch stop {
            case .limit: return
            case .endOfBlock:
                state = .blockHeader
                return
            case .needsInput: break
            case .badCode: throw .invalid("unknown code word")
            case .badDistance: throw .invalid("distance reaches before the first byte")
            }
        }
    }

    /// The loop proper, after the design of libdeflate: a 64-bit reservoir refilled without branches, entries that
    /// carry base and extra bits, and (here) up to three literals an entry.
    ///
    /// It is one long function on purpose: split into inlined steps on a reservoir type it takes a tenth longer.
    /// One round reads at most 24 bytes of input and writes at most ``slack`` bytes behind `limit`.
    /// - Parameters:
    ///   - inputLimit: A round is begun only before it.
    ///   - careful: Whether a round that used bits behind the end of the input is undone.
    @inline(__always)
    private mutating func run(
        _ limit: UnsafeMutablePointer<UInt8>, _ inputLimit: UnsafeMutablePointer<UInt8>, careful: Bool
    ) -> Stop {
        let literalEntries = UnsafePointer(literals.entries)
        let distanceEntries = UnsafePointer(distances.entries)
        let base = UnsafeMutableRawPointer(window)
        let literalIndex: UInt64 = 1 << UInt64(Self.literalBits) &- 1
        let distanceIndex: UInt64 = 1 << UInt64(Self.distanceBits) &- 1
        var reservoir = bits & (1 << UInt64(bitCount) &- 1)
        var available = UInt64(bitCount)
        var next = UnsafeRawPointer(inputNext)
        var write = UnsafeMutableRawPointer(out)
        let end = UnsafeMutableRawPointer(limit)
        let inputStop = UnsafeRawPointer(inputLimit)
        var undo = (reservoir, available, next, write)
        var stop = Stop.limit

        while write < end {
            if careful {
                undo = (reservoir, available, next, write)
                if next >= inputStop && available & 63 == 0 { stop = .needsInput; break }
            } else if next >= inputStop {
                stop = .needsInput
                break
            }
            reservoir |= UInt64(littleEndian: next.loadUnaligned(as: UInt64.self)) &<< available
            next += Int(((63 &- available) &>> 3) & 7)
            available |= 56
            var entry = literalEntries[Int(reservoir & literalIndex)]
            if entry & HuffmanEntry.literalMask != 0 {
                write.storeBytes(of: entry &>> 8, as: UInt32.self)
                write += Int(entry &>> 6 & 3)
                reservoir &>>= UInt64(entry)
                available &-= UInt64(entry)
                entry = literalEntries[Int(reservoir & literalIndex)]
                if entry & HuffmanEntry.literalMask != 0 {
                    write.storeBytes(of: entry &>> 8, as: UInt32.self)
                    write += Int(entry &>> 6 & 3)
                    reservoir &>>= UInt64(entry)
                    available &-= UInt64(entry)
                    entry = literalEntries[Int(reservoir & literalIndex)]
                    if entry & HuffmanEntry.literalMask != 0 {
                        write.storeBytes(of: entry &>> 8, as: UInt32.self)
                        write += Int(entry &>> 6 & 3)
                        reservoir &>>= UInt64(entry)
                        available &-= UInt64(entry)
                        entry = literalEntries[Int(reservoir & literalIndex)]
                        if entry & HuffmanEntry.literalMask != 0 {
                            write.storeBytes(of: entry &>> 8, as: UInt32.self)
                            write += Int(entry &>> 6 & 3)
                            reservoir &>>= UInt64(entry)
                            available &-= UInt64(entry)
                            if careful && next - Int(available &>> 3 & 7) > UnsafeRawPointer(inputEnd) {
                                (reservoir, available, next, write) = undo
                                stop = .needsInput
                                break
                            }
                            continue
                        }
                    }
                }
            }
            // 56 bits again: a length takes at most 20 of them, a distance 28.
            reservoir |= UInt64(littleEndian: next.loadUnaligned(as: UInt64.self)) &<< available
            next += Int(((63 &- available) &>> 3) & 7)
            available |= 56
            if entry & HuffmanEntry.exceptional != 0 {
                if entry & HuffmanEntry.subtable != 0 {
                    reservoir &>>= UInt64(entry)
                    available &-= UInt64(entry)
                    let index = Int(entry &>> 16) &+ Int(reservoir & (1 &<< UInt64(entry &>> 8 & 15) &- 1))
                    entry = literalEntries[index]
                }
                if entry & HuffmanEntry.literalMask != 0 {
                    write.storeBytes(of: UInt8(truncatingIfNeeded: entry &>> 8), as: UInt8.self)
                    write += 1
                    reservoir &>>= UInt64(entry)
                    available &-= UInt64(entry)
                    if careful && next - Int(available &>> 3 & 7) > UnsafeRawPointer(inputEnd) {
                        (reservoir, available, next, write) = undo
                        stop = .needsInput
                        break
                    }
                    continue
                }
                if entry & HuffmanEntry.exceptional != 0 {
                    reservoir &>>= UInt64(entry)
                    available &-= UInt64(entry)
                    stop = entry & HuffmanEntry.endOfBlock != 0 ? .endOfBlock : .badCode
                    if careful && next - Int(available &>> 3 & 7) > UnsafeRawPointer(inputEnd) {
                        (reservoir, available, next, write) = undo
                        stop = .needsInput
                    }
                    break
                }
            }
            let lengthBits = UInt64(entry & 63)
            let lengthExtra = (reservoir & (1 &<< lengthBits &- 1)) &>> UInt64(entry &>> 8 & 15)
            let length = Int(entry &>> 16) &+ Int(truncatingIfNeeded: lengthExtra)
            reservoir &>>= lengthBits
            available &-= lengthBits

            entry = distanceEntries[Int(reservoir & distanceIndex)]
            if entry & HuffmanEntry.exceptional != 0 {
                if entry & HuffmanEntry.subtable != 0 {
                    reservoir &>>= UInt64(entry)
                    available &-= UInt64(entry)
                    let index = Int(entry &>> 16) &+ Int(reservoir & (1 &<< UInt64(entry &>> 8 & 15) &- 1))
                    entry = distanceEntries[index]
                }
                if entry & HuffmanEntry.exceptional != 0 {
                    stop = .badCode
                    break
                }
            }
            let distanceBits = UInt64(entry & 63)
            let distanceExtra = (reservoir & (1 &<< distanceBits &- 1)) &>> UInt64(entry &>> 8 & 15)
            let distance = Int(entry &>> 16) &+ Int(truncatingIfNeeded: distanceExtra)
            reservoir &>>= distanceBits
            available &-= distanceBits
            if careful && next - Int(available &>> 3 & 7) > UnsafeRawPointer(inputEnd) {
                (reservoir, available, next, write) = undo
                stop = .needsInput
                break
            }
            if distance > write - base {
                stop = .badDistance
                break
            }
            Self.copyMatch(write, distance: distance, length: length)
            write += length
        }
        // Whole bytes read ahead go back, which takes padding out of the reservoir; what came from an earlier filling
        // of the buffer cannot go back and need not.
        available &= 63
        let unused = min(Int(available &>> 3), next - UnsafeRawPointer(input))
        next -= unused
        available &-= UInt64(unused) &* 8
        bits = reservoir & (1 &<< available &- 1)
        bitCount = Int(available)
        inputNext = input + (next - UnsafeRawPointer(input))
        out = window + (write - base)
        return stop
    }

    /// Copies a match that may overlap itself, writing up to 15 bytes more than asked.
    @inline(__always)
    private static func copyMatch(_ target: UnsafeMutableRawPointer, distance: Int, length: Int) {
        var to = target
        var from = UnsafeRawPointer(target - distance)
        let end = target + length
        if distance >= 16 {
            repeat {
                to.storeBytes(of: from.loadUnaligned(as: SIMD16<UInt8>.self), as: SIMD16<UInt8>.self)
                to += 16
                from += 16
            } while to < end
        } else if distance >= 8 {
            repeat {
                to.storeBytes(of: from.loadUnaligned(as: UInt64.self), as: UInt64.self)
                to += 8
                from += 8
            } while to < end
        } else if distance == 1 {
            let v = SIMD16<UInt8>(repeating: from.load(as: UInt8.self))
            repeat {
                to.storeBytes(of: v, as: SIMD16<UInt8>.self)
                to += 16
            } while to < end
        } else {
            // Each store repeats one more period: eight bytes are written, `distance` of them are final.
            repeat {
                to.storeBytes(of: from.loadUnaligned(as: UInt64.self), as: UInt64.self)
                to += distance
                from += distance
            } while to < end
        }
    }
}

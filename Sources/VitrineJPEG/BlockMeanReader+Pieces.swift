import VitrineCore
import VitrineImageCore

extension BlockMeanReader {
    /// Starts threads for the parts of a scan behind its first, if the scan is long and processors are idle.
    ///
    /// - Parameters:
    ///   - count: The scan's MCUs.
    /// - Returns: The parts in the order of the file.
    func startPieces(
        _ header: JPEGScanHeader, frame: JPEGFrame, template: [BlockMeanSlot], skipBits: Int, count: Int
    ) -> [BlockMeanPiece] {
        let (start, end) = (window.offset, min(window.source.count, pictureEnd ?? .max))
        let possible = (end - start) / max(1, minimumPieceBytes) - 1
        // With one code for all components, a decoder never finds the first block of an MCU.
        let tellsBlocks = template.count == 1 || Set(template.map { $0.ac.fast }).count > 1
        // Of blocks of a few bits, to keep the coefficients costs more than to read them.
        guard let cores, possible > 0, recorder == nil, tellsBlocks || restartInterval > 0,
            header.components.count == frame.components.count, end - start >= minimumBlockBytes * count * template.count
        else { return [] }
        let claimed = cores.claim(possible)
        let scan = BlockMeanPiece.Scan(
            source: window.source, cancellation: cancellation.token, slots: template, skipBits: UInt64(skipBits),
            restartInterval: restartInterval, mcuCount: count)
        var pieces: [BlockMeanPiece] = []
        for i in (0..<claimed).reversed() {
            let offset = start + (end - start) / (claimed + 1) * (i + 1)
            guard let (begin, restart) = pieceStart(from: offset, to: pieces.last?.start ?? end) else { continue }
            pieces.append(BlockMeanPiece(start: begin, restart: restart, next: pieces.last, scan: scan))
        }
        cores.release(claimed - pieces.count)
        for piece in pieces.reversed() { cores.run(piece.run) }
        return pieces.reversed()
    }

    /// The first byte of the file at or behind `offset` at which a part can begin, and the number of the restart marker
    /// before it.
    private func pieceStart(from offset: Int, to end: Int) -> (Int, UInt8?)? {
        let source = window.source
        var at = offset
        while at < end {
            guard let bytes = try? source.bytes(at: at, count: min(4096, end - at)), bytes.count > 1 else { return nil }
            for i in 1..<bytes.count {
                if restartInterval == 0 {
                    // Not the zero behind 0xFF.
                    if bytes[i - 1] != 0xFF { return (at + i, nil) }
                } else if bytes[i - 1] == 0xFF, JPEGMarker.isRestart(bytes[i]) {
                    return (at + i + 1, bytes[i] - JPEGMarker.firstRestart)
                }
            }
            at += bytes.count - 1
        }
        return nil
    }

    /// Takes the rest of the scan from the parts that other threads have decoded.
    ///
    /// - Parameters:
    ///   - piece: The part that the decode has met.
    ///   - index: The MCU of that part that begins where the decode stands.
    /// - Returns: Whether the parts have the whole rest. Nothing has changed otherwise.
    func finish(
        from piece: BlockMeanPiece, at index: Int, loop: BlockMeanLoop, template: [BlockMeanSlot],
        position: inout Position
    ) throws(ImageError) -> Bool {
        var runs: [(piece: BlockMeanPiece, mcus: Range<Int>)] = []
        var missing = position.total - position.done
        var (current, first) = (piece, index)
        while true {
            guard current.waitForEnd() else { return false }
            let count = min(missing, current.count - first)
            guard count >= 0 else { return false }
            runs.append((current, first..<(first + count)))
            missing -= count
            if missing == 0 { break }
            guard let junction = current.junction, let next = current.next else { return false }
            (current, first) = (next, junction)
        }
        var sums = SIMD4(loop.predictors[0], loop.predictors[1], loop.predictors[2], loop.predictors[3])
        for (piece, mcus) in runs where !mcus.isEmpty {
            guard var coefficients = piece.coefficients(mcus.lowerBound) else { return false }
            // Behind a restart marker, sums begin at zero in the file, too.
            let before = mcus.lowerBound > 0 ? piece.coefficients(mcus.lowerBound - 1).map(loop.sumsOfDC) : nil
            let offsets = piece.restart == nil ? sums &- (before ?? .zero) : .zero
            var left = mcus.count
            while left > 0 {
                try cancellation.check()
                let count = min(left, position.columns - position.column)
                place(loop, template: template, position: position)
                // The last one by itself, for the sums of the next piece.
                if count > 1 { loop.place(&coefficients, count: count - 1, adding: offsets) }
                sums = offsets &+ loop.sumsOfDC(coefficients)
                loop.place(&coefficients, count: 1, adding: offsets)
                position.advance(count)
                left -= count
            }
        }
        return true
    }
}

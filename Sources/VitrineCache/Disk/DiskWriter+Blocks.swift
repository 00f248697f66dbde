import VitrineCore
import VitrineDatabase

/// Bodies in blocks of ``BlockFile``, and the map of its blocks in the table `space`.
extension DiskWriter {
    /// Finds blocks for a body and writes it there, at the latest before the transaction is committed.
    ///
    /// - Returns: nil if the body is to be stored in a row: it is small, or larger than the blocks of one body.
    func place(_ bytes: [UInt8]) throws(FileError) -> [Extent]? {
        guard (BlockFile.smallestBody...BlockFile.largestBody).contains(bytes.count) else { return nil }
        let count = (bytes.count + BlockSpace.blockBytes - 1) / BlockSpace.blockBytes
        guard let extents = space.allocate(count) else { return nil }
        try blockWriter.add(bytes, at: extents)
        return extents
    }

    /// Loads the map if it is not known, or if another connection has changed the database. In a transaction.
    func loadSpace() throws(DatabaseError) {
        let database = try statements().database
        let version = try database.changesOfOthers()
        guard spaceVersion != version else { return }
        let room = space.room
        space = BlockSpace()
        space.room = room
        let select = try database.cachedStatement("SELECT id,bits FROM space ORDER BY id")
        defer { select.reset() }
        var isSound = true
        while try select.step() {
            let number = Int(clamping: select.integer(at: 0))
            let isLoaded = select.withBytes(at: 1) { space.load(number, $0) }
            isSound = isSound && isLoaded
        }
        if !isSound { try rebuildSpace() }
        spaceVersion = version
    }

    /// Stores the changed chunks of the map in the transaction.
    ///
    /// - Returns: The blocks that are free once it is committed.
    func storeSpace() throws(DatabaseError) -> [Extent] {
        let freed = space.applyReleases()
        guard !space.changed.isEmpty else { return freed }
        let core = try statements()
        for number in space.changed {
            if let bits = space.chunk(number) {
                core.storeChunk.bind(Int64(number), at: 1)
                core.storeChunk.bind(bits, at: 2)
                try core.storeChunk.run()
            } else {
                core.deleteChunk.bind(Int64(number), at: 1)
                try core.deleteChunk.run()
            }
        }
        space.markStored()
        return freed
    }

    /// Gives free blocks back to the file system that are too many, or for which the capacity has no room. Called after
    /// the transaction that has released some. The caller holds the process lock, so that no other process takes them
    /// meanwhile.
    ///
    /// - Parameter freed: The blocks that have just become free; nil if all free blocks may be on the disk.
    func giveBack(_ freed: [Extent]?) {
        let free = space.end - space.used, least = space.used + space.spare
        guard free > space.spare else { return }
        if free > space.mostSpare, freed?.isEmpty != true {
            blocks.giveBack(freed ?? space.freeRuns, above: space.used + space.mostSpare, downTo: least)
        }
        guard space.isCrowded else { return }
        space.cutEnd()
        blocks.cut(to: space.end)
        // From the end, as new bodies go to the beginning.
        blocks.giveBack(space.freeRuns.reversed(), above: space.mostRoom, downTo: max(space.room, least))
    }

    /// Notes how many blocks the capacity has room for beside the pages and the files. In a transaction.
    func noteBlockRoom(capacity: Int, pages: Int) {
        let room = capacity.addingReportingOverflow(Self.pageAllowance)
        let others = max(0, pages) &* BlockSpace.blockBytes &+ max(0, totals.fileBytes)
        space.room = room.overflow ? BlockSpace.blockLimit : max(0, room.partialValue &- others) / BlockSpace.blockBytes
    }

    /// Makes the map anew from the rows, in a transaction.
    func rebuildSpace() throws(DatabaseError) {
        let database = try statements().database
        try database.execute("DELETE FROM space")
        space.beginRebuilding()
        let select = try database.prepare("SELECT blocks FROM entry WHERE body<0")
        while try select.step() {
            for extent in select.withBytes(at: 0, { Extent.decode($0) }) { space.addUsed(extent) }
        }
    }

    /// Cuts the free end of the file, and gives other free blocks back. The caller holds the process lock.
    func cutBlocks(capacity: Int) {
        guard (try? transaction { _ = try excess(capacity: capacity) }) != nil else { return }
        blocks.cut(to: space.end)
        giveBack(nil)
    }
}

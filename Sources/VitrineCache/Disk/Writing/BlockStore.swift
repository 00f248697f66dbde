import VitrineCore
import VitrineDatabase

/// Bodies in blocks of a ``BlockFile``, and the map of its blocks in the table `space`.
final class BlockStore {
    /// In the place of a row in `body`: the body lies in blocks.
    static let bodyID: Int64 = -1
    /// The number of bytes by which pages may exceed their contents.
    static let pageAllowance = 8 << 20

    private let connection: DiskConnection
    private let file: BlockFile
    private let writer: BlockWriter
    /// The blocks in use, as the transaction leaves them. Loaded when another connection has changed the database.
    private var space = BlockSpace()
    /// The number of changes by other connections when ``space`` was loaded; nil if it is to be loaded.
    private var spaceVersion: Int64?

    init(_ connection: DiskConnection, file: BlockFile) {
        self.connection = connection
        self.file = file
        writer = BlockWriter(file: file)
    }

    /// Whether the transaction has released so many blocks that it is to be committed.
    var isReleaseDue: Bool { space.isReleaseDue }

    /// The number of blocks that count towards the capacity.
    var occupied: Int { space.occupied }

    // MARK: Bodies

    /// Finds blocks for a body and writes it there, at the latest before the transaction is committed.
    ///
    /// - Returns: nil if the body is to be stored in a row: it is small, or larger than the blocks of one body.
    func placeBody(_ bytes: [UInt8]) throws(FileError) -> [Extent]? {
        guard (BlockFile.smallestBody...BlockFile.largestBody).contains(bytes.count) else { return nil }
        let count = (bytes.count + BlockSpace.blockBytes - 1) / BlockSpace.blockBytes
        guard let extents = space.allocate(count) else { return nil }
        try writer.add(bytes, at: extents)
        return extents
    }

    /// Releases the blocks of a removed body when the transaction is committed.
    func release(_ extents: [Extent]) { space.release(extents) }

    /// Writes the gathered bodies, before the transaction is committed.
    func flush() throws(FileError) { try writer.flush() }

    /// The transaction was dropped.
    func rollback() {
        writer.drop()
        spaceVersion = nil
    }

    // MARK: The map

    /// Loads the map if it is not known, or if another connection has changed the database. In a transaction.
    func loadMap() throws(DatabaseError) {
        let database = try connection.statements().database
        let version = try database.changesOfOthers()
        guard spaceVersion != version else { return }
        let capacity = space.capacity
        space = BlockSpace()
        space.capacity = capacity
        let select = try database.cachedStatement("SELECT id,bits FROM space ORDER BY id")
        defer { select.reset() }
        var isSound = true
        while try select.step() {
            let number = Int(clamping: select.integer(at: 0))
            let isLoaded = select.withBytes(at: 1) { space.load(number, $0) }
            isSound = isSound && isLoaded
        }
        if !isSound { try rebuildMap() }
        spaceVersion = version
    }

    /// Stores the changed chunks of the map in the transaction.
    ///
    /// - Returns: The blocks that are free once it is committed.
    func storeMap() throws(DatabaseError) -> [Extent] {
        let freed = space.applyReleases()
        guard !space.changed.isEmpty else { return freed }
        let core = try connection.statements()
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

    /// Makes the map anew from the rows, in a transaction.
    func rebuildMap() throws(DatabaseError) {
        let database = try connection.statements().database
        try database.execute("DELETE FROM space")
        space.beginRebuilding()
        let select = try database.prepare("SELECT blocks FROM entry WHERE body<0")
        while try select.step() {
            for extent in select.withBytes(at: 0, { Extent.decode($0) }) { space.addUsed(extent) }
        }
    }

    // MARK: The size of the file

    /// Gives free blocks back to the file system that are too many, or that do not fit the capacity. Called after
    /// the transaction that has released some. The caller holds the process lock, so that no other process takes them
    /// meanwhile.
    ///
    /// - Parameter freed: The blocks that have just become free; nil if all free blocks may be on the disk.
    func giveBackBlocks(_ freed: [Extent]?) {
        let free = space.end - space.used, least = space.used + space.spare
        guard free > space.spare else { return }
        if free > space.mostSpare, freed?.isEmpty != true {
            file.giveBack(freed ?? space.freeRuns, above: space.used + space.mostSpare, downTo: least)
        }
        guard space.isCrowded else { return }
        space.cutEnd()
        file.cut(to: space.end)
        // From the end, as new bodies go to the beginning.
        file.giveBack(space.freeRuns.reversed(), above: space.growthLimit, downTo: max(space.capacity, least))
    }

    /// Notes how many blocks fit the capacity beside the pages and the files. In a transaction.
    func noteCapacity(_ capacity: Int, pages: Int, fileBytes: Int) {
        let limit = capacity.addingReportingOverflow(Self.pageAllowance)
        let others = max(0, pages) &* BlockSpace.blockBytes &+ max(0, fileBytes)
        space.capacity =
            limit.overflow
            ? BlockSpace.blockLimit : max(0, limit.partialValue &- others) / BlockSpace.blockBytes
    }

    /// Cuts the free end of the file, and gives other free blocks back. The caller holds the process lock.
    func cutEnd() {
        file.cut(to: space.end)
        giveBackBlocks(nil)
    }
}

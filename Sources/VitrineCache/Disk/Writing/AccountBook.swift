import VitrineCore
import VitrineDatabase

/// The sizes and counts of the entries of one database: an account of each format, and one of all entries.
///
/// Other processes may change them, so that each transaction loads the totals, and the accounts that it needs.
final class AccountBook {
    /// The totals of all entries in the database.
    struct Totals: Equatable {
        var bytes = 0
        var count = 0
        /// The size of the entries with body files, in bytes.
        var fileBytes = 0
        /// In the least-recently-used order, the number of uses so far.
        var uses = 0.0
        /// The latest creation of any entry, in nanoseconds since 1970: tells when the clock has gone back.
        var latest: Int64 = 0
    }

    /// The totals of a format's entries.
    struct Account: Equatable {
        var bytes = 0
        var count = 0
        /// The rank of the entry that was evicted last.
        var floor = 0.0
    }

    /// Bytes and counts that a cache can have: sums of them are far from overflowing.
    private static let plausible = 0...(1 << 48)

    private(set) var totals = Totals()
    private let connection: DiskConnection
    private var storedTotals = Totals()
    /// The accounts that the transaction has looked at, as they are now and as they are stored.
    private var accounts: [Int64: Account] = [:]
    private var storedAccounts: [Int64: Account] = [:]
    /// The names of formats that were written.
    private var names: [Int64: String] = [:]
    /// The changed sizes of formats since they were last read, in bytes.
    private var sizes: [Int64: Int] = [:]

    init(_ connection: DiskConnection) { self.connection = connection }

    /// A number of bytes or entries out of a row, which may be damaged.
    static func clamped(_ number: Int64) -> Int {
        min(max(Int(clamping: number), plausible.lowerBound), plausible.upperBound)
    }

    // MARK: Transactions

    /// Forgets the accounts, which other processes may change before the next transaction.
    func forgetAccounts() {
        accounts = [:]
        storedAccounts = [:]
    }

    /// Loads the totals at the beginning of a transaction.
    ///
    /// - Returns: Whether they can be right. Those of a damaged row would overflow, or evict everything.
    func loadTotals() throws(DatabaseError) -> Bool {
        let total = try connection.statements().total
        guard try total.step() else { throw DatabaseError(code: 11, message: "no totals", path: connection.path) }
        totals = Totals(
            bytes: Int(clamping: total.integer(at: 0)), count: Int(clamping: total.integer(at: 1)),
            fileBytes: Int(clamping: total.integer(at: 4)), uses: total.double(at: 2), latest: total.integer(at: 3))
        total.reset()
        storedTotals = totals
        if !totals.uses.isFinite { totals.uses = 0 }
        return [totals.bytes, totals.count, totals.fileBytes].allSatisfy(Self.plausible.contains)
    }

    /// Stores the changed accounts in the transaction.
    func storeAccounts() throws(DatabaseError) {
        let core = try connection.statements()
        for (id, account) in accounts where account != storedAccounts[id] {
            if account.count > 0 {
                try storeRow(
                    Row(
                        id: id, name: names[id] ?? "", bytes: account.bytes, count: account.count,
                        floor: account.floor))
            } else {
                core.deleteAccount.bind(id, at: 1)
                try core.deleteAccount.run()
            }
        }
        guard totals != storedTotals else { return }
        try storeRow(
            Row(
                id: DiskConnection.totalID, name: "", bytes: totals.bytes, count: totals.count, floor: totals.uses,
                latest: totals.latest, files: totals.fileBytes))
    }

    /// The transaction was committed.
    func markStored() {
        storedTotals = totals
        storedAccounts = accounts
        for (id, account) in accounts { sizes[id] = account.bytes }
    }

    /// The transaction was dropped.
    func restoreStored() {
        totals = storedTotals
        accounts = storedAccounts
    }

    /// Returns the sizes of formats that have changed since the last call, in bytes.
    func takeSizes() -> [Int64: Int] {
        defer { sizes = [:] }
        return sizes
    }

    /// A row of the table `account`. That of all entries has the number of uses in the place of the floor.
    private struct Row {
        var id: Int64
        var name: String
        var bytes: Int
        var count: Int
        var floor: Double
        var latest: Int64 = 0
        var files = 0
    }

    private func storeRow(_ row: Row) throws(DatabaseError) {
        let set = try connection.statements().setAccount
        set.bind(row.id, at: 1)
        set.bind(row.name, at: 2)
        set.bind(row.bytes, at: 3)
        set.bind(row.count, at: 4)
        set.bind(row.floor, at: 5)
        set.bind(row.latest, at: 6)
        set.bind(row.files, at: 7)
        try set.run()
    }

    // MARK: Accounts

    /// Returns the totals of a format.
    func account(_ format: Int64) throws(DatabaseError) -> Account {
        if let known = accounts[format] { return known }
        let select = try connection.statements().account
        select.bind(format, at: 1)
        defer { select.reset() }
        var account = Account()
        if try select.step() {
            let floor = select.double(at: 2)
            account = Account(
                bytes: Self.clamped(select.integer(at: 0)), count: Self.clamped(select.integer(at: 1)),
                floor: floor.isFinite ? floor : 0)
        }
        accounts[format] = account
        storedAccounts[format] = account
        return account
    }

    /// Changes the totals of a format and the overall totals.
    ///
    /// - Parameter files: The part of the bytes that belongs to entries with body files.
    func changeAccount(of format: Int64, bytes: Int, count: Int = 0, files: Int) throws(DatabaseError) {
        var account = try account(format)
        account.bytes += bytes
        account.count += count
        accounts[format] = account
        totals.bytes += bytes
        totals.count += count
        totals.fileBytes += files
    }

    /// Raises the floor of a format. The floor never falls.
    func raiseFloor(of format: Int64, to rank: Double) throws(DatabaseError) {
        let floor = try account(format).floor
        accounts[format]?.floor = max(floor, rank)
    }

    /// Gives the account of a format its name, with the next commit.
    func setName(_ name: String, of format: Int64) { names[format] = name }

    /// The formats that have entries.
    func storedFormats() throws(DatabaseError) -> Set<Int64> {
        let select = try connection.statements().database.cachedStatement(
            "SELECT id FROM account WHERE id<>\(DiskConnection.totalID)")
        defer { select.reset() }
        var formats = Set(accounts.filter { $0.value.count > 0 }.keys)
        while try select.step() {
            let id = select.integer(at: 0)
            if accounts[id].map({ $0.count > 0 }) ?? true { formats.insert(id) }
        }
        return formats
    }

    /// Whether no other format has entries.
    func isAlone(_ format: Int64) throws(DatabaseError) -> Bool {
        let select = try connection.statements().database.cachedStatement(
            "SELECT EXISTS(SELECT 1 FROM account WHERE count>0 AND id<>\(DiskConnection.totalID) AND id<>?)")
        select.bind(format, at: 1)
        defer { select.reset() }
        return try select.step() && select.integer(at: 0) == 0
    }

    /// Whether all entries are of this format, by the totals.
    func holdsAll(_ format: Int64) throws(DatabaseError) -> Bool {
        let account = try account(format)
        return account.count == totals.count && account.bytes == totals.bytes
    }

    /// Returns the number of a new use, in the least-recently-used order.
    func countUse() -> Double {
        totals.uses += 1
        return totals.uses
    }

    /// Notes the creation of an entry.
    func noteCreation(_ created: Int64) { totals.latest = max(totals.latest, created) }

    /// Sets the latest creation, after the clock was set back.
    func resetLatestCreation(to created: Int64) { totals.latest = created }

    /// Whether the totals are less than nothing: a row or the totals were damaged.
    var isDamaged: Bool { totals.bytes < 0 || totals.count < 0 || totals.fileBytes < 0 }

    /// Counts all entries anew.
    func recount() throws(DatabaseError) {
        let charge = DiskConnection.chargeSQL
        let count = try connection.statements().database.prepare(
            "SELECT format,count(*),total(\(charge)),total((\(charge))*(body=0)) FROM entry GROUP BY format")
        for format in try storedFormats() { _ = try account(format) }
        for format in accounts.keys {
            accounts[format]?.bytes = 0
            accounts[format]?.count = 0
        }
        totals.bytes = 0
        totals.count = 0
        totals.fileBytes = 0
        while try count.step() {
            try changeAccount(
                of: count.integer(at: 0), bytes: Self.clamped(count.integer(at: 2)),
                count: Self.clamped(count.integer(at: 1)), files: Self.clamped(count.integer(at: 3)))
        }
    }
}

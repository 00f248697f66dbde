/// What is shared by those who ask at the same time: the same entry, on the same terms.
struct FlightKey: Hashable, Sendable {
    let slot: MemoryKey
    let levels: CacheLevels
    /// Requests made after the entry was changed do not join work that began before.
    let epoch: LoadRegister.Epoch
    /// Whether stored values count as missing.
    let isRefresh: Bool
}

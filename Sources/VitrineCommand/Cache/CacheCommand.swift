import ArgumentParser

/// `vitrine cache`: what the caches of this user's programs hold, and putting it in order.
struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Looks into caches, changes them, and puts them in order.",
        discussion: """
            Caches are found by name below --root. Programs that use them may go on meanwhile. Without --name, stats, \
            list, audit and verify look at all of them; the others need one.
            """,
        subcommands: [
            CacheStatsCommand.self, CacheListCommand.self, CacheGetCommand.self, CachePutCommand.self,
            CacheRemoveCommand.self, CacheClearCommand.self, CacheAuditCommand.self, CacheVerifyCommand.self,
        ]
    )
}

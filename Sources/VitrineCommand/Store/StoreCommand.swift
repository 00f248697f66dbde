import ArgumentParser

/// `vitrine store`: files and pictures by name.
struct StoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Keeps pictures and other files by name until they are deleted.",
        subcommands: [
            StoreSaveCommand.self, StoreLoadCommand.self, StoreListCommand.self, StoreRenameCommand.self,
            StoreDeleteCommand.self, StoreExistsCommand.self, StorePathCommand.self, StoreImportCommand.self,
            StoreExportCommand.self,
        ])
}

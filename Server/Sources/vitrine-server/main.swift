import Foundation
import VitrineServer

let command = ServerCommand(
    arguments: Array(CommandLine.arguments.dropFirst()), environment: ProcessInfo.processInfo.environment,
    parts: .images)
exit(await command.run())

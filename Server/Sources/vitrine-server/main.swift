import Foundation
import Hummingbird
import VitrineServer

let parts = ServerCommand.Parts(
    hooks: { _, _, _ in
        ImageServer.Hooks(
            responder: CallbackResponder<ServerRequestContext> { _, _ in
                throw RequestError(404, "not-found", "There is no such path.")
            })
    },
    explain: { path, _ in
        throw RequestError(400, "not-found", "There is no such path: \(path)")
    })
let command = ServerCommand(
    arguments: Array(CommandLine.arguments.dropFirst()), environment: ProcessInfo.processInfo.environment, parts: parts)
exit(await command.run())

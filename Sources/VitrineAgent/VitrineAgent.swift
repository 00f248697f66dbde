// The process that carries downloads on. Programs start it when they need it; see `vitrine download agent`.
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore
import VitrineDownloads

@main
enum VitrineAgent {
    static func main() async {
        exit(await AgentProcess.run(ProcessArguments.words))
    }
}

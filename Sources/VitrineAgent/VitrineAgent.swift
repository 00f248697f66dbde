// The process that carries downloads after their programs have ended. Programs start it on demand; see
// `vitrine download agent`.
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

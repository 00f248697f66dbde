import Logging
import TestSupport
import Testing
import VitrineCore

struct LogTests {
    @Test func labelsBeginWithThePackagesName() {
        #expect(Log.logger("cache").label == "vitrine.cache")
    }

    @Test func debugMessagesAreBuiltInDebugBuildsOnly() {
        let built = Recorder<Int>()
        var logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .trace
        logger.debugOnly("\({ built.add(1); return 1 }())")
        #if !DEBUG
        #expect(built.all.isEmpty)
        #endif
    }
}

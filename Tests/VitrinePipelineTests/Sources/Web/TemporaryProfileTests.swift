#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrinePipeline
import VitrineWebPages

@Suite struct TemporaryProfileTests {
    @Test func isRemovedWithTheObject() throws {
        let parent = try TemporaryDirectory()
        var profile: TemporaryProfile? = try TemporaryProfile(in: parent.path)
        let path = try #require(profile?.path)
        #expect(FileManager.default.fileExists(atPath: path))
        profile = nil
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func sweepingRemovesWhatNobodyUses() throws {
        let parent = try TemporaryDirectory()
        let profile = try TemporaryProfile(in: parent.path)
        for name in ["vitrine-web-abcdef/Default", "vitrine-page-abcdef", "elsewhere"] {
            try FileManager.default.createDirectory(
                atPath: parent.file(name), withIntermediateDirectories: true)
        }
        try parent.write("x", to: "vitrine-web-abcdef/Default/Cookies")
        try FileManager.default.createSymbolicLink(
            atPath: parent.file("vitrine-web-linked"), withDestinationPath: parent.file("elsewhere"))
        TemporaryProfile.sweep(parent.path)
        let left = try FileManager.default.contentsOfDirectory(atPath: parent.path)
        let own = URL(filePath: profile.path).lastPathComponent
        #expect(Set(left) == [own, "vitrine-page-abcdef", "elsewhere", "vitrine-web-linked"])
    }
}
#endif

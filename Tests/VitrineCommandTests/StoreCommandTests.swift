import Foundation
import TestSupport
import Testing
import VitrineImaging

@Suite struct StoreCommandTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private var root: String { scratch.file("root").path }

    private func store(_ arguments: String...) async throws -> Tool.Outcome {
        try await Tool.run(["store"] + arguments + ["--root", root])
    }

    private func size(_ path: String) throws -> PixelSize { try ImageInfo(of: .file(path)).size }

    @Test func picturesAreSavedListedLoadedAndDeleted() async throws {
        let saved = try await store("save", Samples.path("lake.jpg"), "--name", "Bodensee.jpg")
        #expect(saved.status == 0 && saved.output == "\(root)/Bodensee.jpg\n")
        #expect(try await store("save", Samples.path("leaf.png"), Samples.path("lake.webp")).status == 0)
        #expect(try await store("list").output == "Bodensee.jpg\nlake.webp\nleaf.png\n")
        let largest = try await store("list", "--by", "size", "--reverse").output.split(separator: "\n")
        #expect(largest.count == 3)

        let output = scratch.file("out.jpg").path
        #expect(try await store("load", "Bodensee.jpg", "-o", output).status == 0)
        #expect(try Data(contentsOf: URL(filePath: output)) == Data(Samples.bytes("lake.jpg")))
        #expect(try await store("load", "Bodensee.jpg", "--thumbnail", "-o", output).status == 0)
        #expect(try size(output).longestSide == 256)

        #expect(try await store("exists", "leaf.png").output == "yes\n")
        #expect(try await store("delete", "leaf.png", "lake.webp", "absent").status == 0)
        let gone = try await store("exists", "leaf.png")
        #expect(gone.status == 1 && gone.output == "no\n" && gone.errors.isEmpty)
        #expect(scratch.contents.filter { $0.hasPrefix("root/thumbnail/") } == ["root/thumbnail/Bodensee.jpg"])
    }

    @Test func standardOutputHasTheBytes() async throws {
        try Data("plain text".utf8).write(to: scratch.file("note.txt"))
        #expect(try await store("save", scratch.file("note.txt").path, "--files").status == 0)
        #expect(try await store("load", "note.txt", "--files").output == "plain text")
        #expect(try await store("load", "note.txt", "--files", "-o", "-").output == "plain text")
    }

    @Test func renamingKeepsToWhatItMay() async throws {
        _ = try await store("save", Samples.path("lake.jpg"), Samples.path("leaf.png"))
        let refused = try await store("rename", "lake.jpg", "leaf.png")
        #expect(refused.status == 1)
        #expect(refused.errors == "vitrine store: \"leaf.png\" exists already; add --replace to replace it\n")
        let absent = try await store("rename", "absent", "x")
        #expect(absent.errors == "vitrine store: there is nothing named \"absent\"; 'vitrine store list' lists the names\n")
        #expect(try await store("rename", "lake.jpg", "See.jpg").status == 0)
        #expect(try await store("rename", "See.jpg", "leaf.png", "--replace").status == 0)
        #expect(try await store("list").output == "leaf.png\n")
        #expect(try size(root + "/thumbnail/leaf.png").longestSide == 256)
    }

    @Test func nothingIsReplacedUnlessTold() async throws {
        _ = try await store("save", Samples.path("lake.jpg"), "--name", "a")
        let refused = try await store("save", Samples.path("leaf.png"), "--name", "a", "--json")
        #expect(refused.status == 1)
        #expect((refused.objects.first?["error"] as? String)?.contains("exists already") == true)
        #expect(try await store("save", Samples.path("leaf.png"), "--name", "a", "--replace").status == 0)
        #expect(try ImageInfo(of: .file(root + "/a")).format == .png)
    }

    @Test func generatedNamesSortByTime() async throws {
        var names: [String] = []
        for _ in 0..<3 {
            let saved = try await store("save", Samples.path("lake.jpg"), "--name", "", "--json")
            names.append(try #require(saved.objects.first?["name"] as? String))
        }
        #expect(names == names.sorted() && Set(names).count == 3)
        #expect(names.allSatisfy { $0.count == 20 && $0.hasSuffix(".jpg") })
        let file = try await store("save", Samples.path("lake.pdf"), "--name", "", "--files", "--json")
        #expect((file.objects.first?["name"] as? String)?.hasSuffix(".pdf") == true)
    }

    @Test func sizesAndQualitiesAreApplied() async throws {
        let path = Samples.path("lake.jpg")
        _ = try await store("save", path, "--name", "box.jpg", "--max-size", "100x100")
        #expect(try size(root + "/box.jpg").longestSide == 100)
        _ = try await store("save", path, "--name", "high.jpg", "--max-size", "x50")
        #expect(try size(root + "/high.jpg").height == 50)
        _ = try await store("save", path, "--name", "poor.jpg", "--quality", "0.1")
        _ = try await store("save", path, "--name", "fine.jpg", "--quality", "0.95")
        let bytes = try ["poor.jpg", "fine.jpg"].map { try Data(contentsOf: URL(filePath: "\(root)/\($0)")).count }
        #expect(bytes[0] * 2 < bytes[1])
        #expect(try size(root + "/poor.jpg") == size(path))
    }

    @Test func everyAnswerIsJSONWhereAskedFor() async throws {
        let saved = try #require(try await store("save", Samples.path("lake.jpg"), "--json").objects.first)
        #expect(saved["name"] as? String == "lake.jpg" && saved["path"] as? String == root + "/lake.jpg")
        let item = try #require(try await store("list", "--json").objects.first)
        #expect(item["name"] as? String == "lake.jpg")
        #expect(item["bytes"] as? Int == (try Samples.bytes("lake.jpg").count))
        #expect((item["modified"] as? Double ?? 0) > 1.6e9)
        #expect(try await store("exists", "lake.jpg", "--json").objects.first?["exists"] as? Bool == true)
        let absent = try await store("exists", "absent", "--json")
        #expect(absent.status == 1 && absent.objects.first?["exists"] as? Bool == false)
        #expect(try await store("path", "lake.jpg", "--json").objects.first?["path"] as? String == root + "/lake.jpg")
    }

    @Test func pathsAreSaidOfWhatIsNotThereToo() async throws {
        #expect(try await store("path", "new.jpg").output == root + "/new.jpg\n")
        #expect(try await store("path", "new.jpg", "--thumbnail").output == root + "/thumbnail/new.jpg\n")
        #expect(scratch.contents.isEmpty)
    }

    @Test func directoriesGoInAndOut() async throws {
        let tree = try scratch.tree(["lake.jpg", "leaf.png", "below/lake.webp"])
        try Data("no picture".utf8).write(to: tree.appending(path: "notes.txt"))
        let taken = try await store("import", tree.path, "--json")
        #expect(taken.status == 1)
        #expect(taken.objects.map { $0["name"] as? String } == ["lake.jpg", "leaf.png", "notes.txt"])
        #expect(taken.objects.map { $0["error"] == nil } == [true, true, false])
        #expect(taken.objects.map { $0["done"] as? Int } == [1, 2, 3])
        #expect(taken.objects.allSatisfy { $0["total"] as? Int == 3 })
        #expect(try await store("list").output == "lake.jpg\nleaf.png\n")
        // A second time nothing is replaced.
        let again = try await store("import", tree.path)
        #expect(again.status == 1 && again.errors.contains("exists already"))
        #expect(try await store("import", tree.path, "--replace", "--max-size", "64").status == 1)
        #expect(try size(root + "/lake.jpg").longestSide == 64)

        let out = scratch.file("out").path
        #expect(try await store("export", out).status == 0)
        #expect(try size(out + "/lake.jpg").longestSide == 64)
        #expect(try await store("export", out).status == 1)
        let small = scratch.file("small").path
        #expect(try await store("export", small, "--thumbnail").output == "lake.jpg\nleaf.png\n")
        #expect(try FileManager.default.contentsOfDirectory(atPath: small).sorted() == ["lake.jpg", "leaf.png"])
        let missing = try await store("import", scratch.file("absent").path)
        #expect(missing.status == 1 && missing.errors.contains("absent"))
    }

    @Test func placesAreTheUsersDirectories() async throws {
        let home = scratch.file("home")
        try FileManager.default.createDirectory(
            at: home.appending(path: "config"), withIntermediateDirectories: true)
        func path(_ arguments: String...) async throws -> String {
            try await Tool.run(["store", "path", "a"] + arguments, home: home).output
        }
        #expect(try await path("--caches") == home.appending(path: "cache/UserDocuments/a").path + "\n")
        let documents = try await path("--documents")
        #expect(documents.hasSuffix("/UserDocuments/a\n"))
        #expect(try await path() == documents)
        #expect(try await Tool.run(["store", "save", Samples.path("lake.jpg"), "--caches"], home: home).status == 0)
        #expect(scratch.contents.contains("home/cache/UserDocuments/thumbnail/lake.jpg"))
    }

    @Test func failuresAreSaidAndCounted() async throws {
        let found = try await store("save", Samples.path("lake.jpg"), "/nowhere/x.jpg", Samples.path("lake.mp4"))
        #expect(found.status == 1)
        #expect(found.output == root + "/lake.jpg\n")
        #expect(found.errors.contains("/nowhere/x.jpg") && found.errors.contains("lake.mp4"))
        for name in ["..", "a/b", "thumbnail", "", String(repeating: "x", count: 256)] {
            let outcome = try await store("load", name)
            #expect(outcome.status == 1 && outcome.errors.contains("is not a valid name"), "\(name)")
        }
        #expect(try await store("load", "absent").status == 1)
        #expect(try await store("load", "lake.jpg", "-o", "/nowhere/file").status == 1)
        #expect(try await store("list").output == "lake.jpg\n")
    }

    @Test func whereNoStoreIsNothingCanBeListed() async throws {
        for arguments in [["list"], ["list", "--json"], ["list", "--files"], ["export", scratch.file("out").path]] {
            let outcome = try await Tool.run(["store"] + arguments + ["--root", root])
            #expect(outcome.status == 1 && outcome.output.isEmpty, "\(arguments)")
            #expect(outcome.errors == "\(root): there is no store; 'vitrine store save' makes one\n")
        }
        #expect(scratch.contents.isEmpty)
        // An empty store is one.
        _ = try await store("save", Samples.path("leaf.png"))
        _ = try await store("delete", "leaf.png")
        let empty = try await store("list")
        #expect(empty.status == 0 && empty.output.isEmpty && empty.errors.isEmpty)
    }

    @Test func wrongUseIsRefused() async throws {
        // These print no lines that could be JSON.
        for arguments in [["load", "a"], ["rename", "a", "b"], ["delete", "a"]] {
            #expect(try await Tool.run(["store"] + arguments + ["--json", "--root", root]).status == 2, "\(arguments)")
        }
        #expect(try await store("save").status == 2)
        #expect(try await store("save", "a", "b", "--name", "c").status == 2)
        #expect(try await store("save", "a", "--quality", "101").status == 2)
        #expect(try await store("save", "a", "--max-size", "large").status == 2)
        #expect(try await store("list", "--caches").status == 2)
        #expect(try await store("list", "--by", "colour").status == 2)
        #expect(try await Tool.run(["store", "list", "--caches", "--documents"]).status == 2)
        #expect(try await Tool.run(["store", "vanish"]).status == 2)
    }
}

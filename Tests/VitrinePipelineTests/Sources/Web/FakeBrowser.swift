#if os(Linux)
import Foundation
import TestSupport
import VitrineImaging
import VitrinePipeline
import VitrineWebPages

/// A program that stands in for a browser: a script that finds its arguments, reads commands from descriptor 3 and
/// answers through descriptor 4, in its own directory.
struct FakeBrowser {
    let directory: TemporaryDirectory
    let path: String

    init(_ script: String) throws {
        directory = try TemporaryDirectory()
        path = directory.file("browser")
        try directory.write("#!/bin/sh\ncd '\(directory.path)'\n\(script)\n", to: "script")
        // Written by another process: children that other tests start at this moment would keep it open for writing,
        // and then it cannot be executed (ETXTBSY).
        let copy = Process()
        copy.executableURL = URL(filePath: "/usr/bin/install")
        copy.arguments = ["-m", "755", directory.file("script"), path]
        try copy.run()
        copy.waitUntilExit()
    }

    /// One that answers every command in turn and draws `image`.
    static func drawing(_ image: PixelImage, before: String = "") throws -> FakeBrowser {
        let png = Data(try image.encoded(as: .png)).base64EncodedString()
        let replies = preparation + [
            #"{"method":"Target.somethingElse","params":{"name":"x"}}"#,
            #"{"id":9,"result":{"loaderId":"L","frameId":"T"}}"#,
            #"{"method":"Page.lifecycleEvent","params":{"name":"load","loaderId":"other"}}"#,
            #"{"method":"Page.lifecycleEvent","params":{"name":"load","loaderId":"L"}}"#,
            #"{"id":10,"result":{"data":"\#(png)"}}"#,
        ]
        return try FakeBrowser(before + "\n" + say(replies) + "\nexec cat <&3 > commands")
    }

    /// The answers to the commands that prepare a tab.
    static let preparation = (1...8).map { #"{"id":\#($0),"result":{"targetId":"T","sessionId":"S"}}"# }

    static func say(_ replies: [String]) -> String {
        replies.map { "printf '%s\\000' '\($0)' >&4" }.joined(separator: "\n")
    }

    func page(_ url: String = "https://example.org/") -> WebPageSource {
        var page = WebPageSource(url: url, browser: path)
        page.usesSandbox = false
        return page
    }

    /// Where it was told to keep its profile.
    var profile: String? {
        directory.read("profile")?.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Has the script write down where its profile is.
    static let noteProfile = #"for a in "$@"; do case $a in --user-data-dir=*) echo "${a#*=}" > profile;; esac; done"#

    /// Whether a process of that number runs.
    static func isRunning(_ number: String?) -> Bool {
        guard let number = number.flatMap({ Int32($0.trimmingCharacters(in: .whitespacesAndNewlines)) }) else {
            return false
        }
        guard let status = try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8) else { return false }
        return !status.contains(") Z ")
    }
}
#endif

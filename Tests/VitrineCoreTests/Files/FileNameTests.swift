import Testing
import VitrineCompatibility
import VitrineCore

struct FileNameTests {
    @Test func escapesWhatFileSystemsCannotTake() {
        let vectors = [
            ":": "%3A", "/": "%2F", " ": " ", "\\": "\\", "haneke": "haneke", "%": "%25", "\0": "%00",
            "http://haneke.io": "http%3A%2F%2Fhaneke.io", "/path/to/file": "%2Fpath%2Fto%2Ffile",
            "": "%", ".": "%2E", "..": "%2E%2E", "...": "...", ".a": ".a", "é日": "é日", "%2F": "%252F",
        ]
        for (text, name) in vectors {
            #expect(FileName.escaped(text) == name)
            #expect(FileName.unescaped(name) == text)
        }
    }

    @Test func namesThatEscapingNeverMakesAreRefused() {
        for name in ["", ".", "..", "a/b", "a:b", "%2", "%zz", "%41", "%2f", "%%", "a%", "%FF"] {
            #expect(FileName.unescaped(name) == nil, "\(name)")
        }
    }

    @Test func longNamesAreMeasuredInBytes() {
        let fits = String(repeating: "a", count: 255)
        #expect(FileName.name(for: fits) == fits)
        for long in [fits + "a", String(repeating: "é", count: 128), String(repeating: "/", count: 86)] {
            #expect(FileName.name(for: long) == FileName.sha256(long))
        }
        #expect(FileName.name(for: String(repeating: "/", count: 85)).utf8.count == 255)
    }

    @Test func longNamesKeepTheirExtensionWithoutTheQuery() {
        let path = "http://haneke.io/" + String(repeating: "a", count: 300)
        #expect(FileName.name(for: path + ".png") == FileName.sha256(path + ".png") + ".png")
        let query = path + ".png?size=.jpg#.gif"
        #expect(FileName.name(for: query) == FileName.sha256(query) + ".png")
        #expect(FileName.md5Name(for: "http://haneke.io") == "e7bbf4e61be4fe99e3dd95f99b666aa0")
        #expect(FileName.md5Name(for: "http://haneke.io/a.png") == FileName.md5("http://haneke.io/a.png") + ".png")
    }

    @Test func onlyPlainExtensionsCount() {
        let vectors = [
            "a.png": "png", "/x.y/a": "", ".hidden": "", "a.": "", "a.tar.gz": "gz", "http://haneke.io": "",
            "http://h.io/a.JPG?b=c.d": "JPG", "a.p/ng": "", "a.p%00": "", "a.日": "", "a.12345678901234567": "",
        ]
        for (text, found) in vectors { #expect(FileName.pathExtension(of: text) == found, "\(text)") }
    }

    @Test func compactNamesMatchTheirAncestor() {
        #expect(FileName.compact("") == "M4kmld1jtnr")
        #expect(FileName.compact("a") == "RidSR0dRIuh")
        #expect(FileName.compact("http://haneke.io") == "fkTI1nejhfI")
    }

    @Test func compactNamesUseAllCharactersEvenly() {
        var counts: [Character: Int] = [:]
        for index in 0..<3000 {
            let name = FileName.compact("\(index)")
            #expect(name.utf8.count == 11)
            for character in name { counts[character, default: 0] += 1 }
        }
        #expect(counts.count == 30)
        // 1,100 expected of each; five standard deviations are 163.
        #expect(counts.values.allSatisfy { (937...1263).contains($0) })
    }
}

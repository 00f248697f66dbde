import Foundation
import Logging
import Testing
import VitrineImaging

import VitrineServer

@Suite struct ServerConfigurationTests {
    private func load(
        _ arguments: [String] = [], _ environment: [String: String] = [:]
    ) throws -> ServerConfiguration {
        try ServerConfiguration.load(arguments: arguments, environment: environment).configuration
    }

    /// The one line of a configuration that is refused.
    private func refusal(_ arguments: [String] = [], _ environment: [String: String] = [:]) -> String? {
        do {
            _ = try load(arguments, environment)
            return nil
        } catch let error as ConfigurationError {
            return error.description
        } catch {
            return "unexpected \(error)"
        }
    }

    private func withFile<Value>(
        _ text: String, name: String = "server.toml", _ body: (String) throws -> Value
    ) throws -> Value {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = directory.appendingPathComponent(name)
        try Data(text.utf8).write(to: file)
        return try body(file.path)
    }

    @Test func defaultsServeLoopbackOnly() throws {
        let configuration = try load()
        #expect(configuration == ServerConfiguration())
        #expect(configuration.bind == [.tcp(host: "127.0.0.1", port: 8080)])
        #expect(configuration.adminBind == [.tcp(host: "127.0.0.1", port: 8081)])
    }

    @Test func everySettingHasOneNameAndADocumentation() throws {
        let settings = ServerSettings.all
        #expect(Set(settings.map(\.name)).count == settings.count)
        let aliases = settings.flatMap(\.aliases)
        #expect(Set(aliases).count == aliases.count)
        for setting in settings {
            #expect(setting.name.allSatisfy { $0.isLowercase || $0 == "-" || $0.isNumber }, "\(setting.name)")
            #expect(!setting.unit.isEmpty && setting.help.hasSuffix("."), "\(setting.name)")
            #expect(ServerSettings.help.contains("--\(setting.name) "))
        }
        // Every property has a setting: changing one shows in what is printed.
        let children = Mirror(reflecting: ServerConfiguration()).children
        let count = children.reduce(0) { count, child in
            let isGroup = child.value is FleetConfiguration || child.value is BucketConfiguration
            return count + (isGroup ? Mirror(reflecting: child.value).children.count : 1)
        }
        #expect(settings.count == count)
    }

    @Test func everySettingReadsWhatItShows() throws {
        let defaults = ServerConfiguration()
        for setting in ServerSettings.all {
            var configuration = ServerConfiguration()
            try setting.set(&configuration, setting.get(defaults))
            #expect(configuration == defaults, "\(setting.name)")
        }
    }

    @Test func flagsComeBeforeVariablesAndThoseBeforeTheFile() throws {
        try withFile("quality = 10\nttl = 11\ntimeout = 12.5\n") { file in
            let configuration = try load(
                ["--quality", "30", "--config", file], ["VITRINE_QUALITY": "20", "VITRINE_TTL": "21"])
            #expect(configuration.quality == 30)
            #expect(configuration.ttl == 21)
            #expect(configuration.timeout == 12.5)
            #expect(try load([], ["VITRINE_CONFIG": file]).quality == 10)
        }
    }

    @Test func filesMayBeTOMLOrJSON() throws {
        let toml = """
            # A comment.
            bind = ["127.0.0.1:9000", "unix:/run/vitrine/a.sock"]
            auto-avif = false
            max-source-bytes = "10MiB"
            trusted-proxies = ["10.0.0.0/8"]
            [presets]
            small = "rs:fit:100:100"
            [format-quality]
            jpeg = 70
            [source-headers."images.example.com"]
            Authorization = 'Bearer "x"'
            """
        let json = """
            {"bind": ["127.0.0.1:9000", "unix:/run/vitrine/a.sock"], "auto-avif": false, "max-source-bytes": "10MiB",
             "trusted-proxies": ["10.0.0.0/8"], "presets": {"small": "rs:fit:100:100"}, "format-quality": {"jpeg": 70},
             "source-headers": {"images.example.com": {"Authorization": "Bearer \\"x\\""}}}
            """
        var expected = ServerConfiguration()
        expected.bind = [.tcp(host: "127.0.0.1", port: 9000), .unix("/run/vitrine/a.sock")]
        expected.autoAVIF = false
        expected.maximumSourceBytes = 10 << 20
        expected.trustedProxies = [try AddressRange("10.0.0.0/8")]
        expected.presets = ["small": "rs:fit:100:100"]
        expected.formatQuality = [.jpeg: 70]
        expected.sourceHeaders = ["images.example.com": ["Authorization": "Bearer \"x\""]]
        #expect(try withFile(toml) { try load(["--config", $0]) } == expected)
        #expect(try withFile(json, name: "server.json") { try load(["--config=\($0)"]) } == expected)
    }

    @Test func variablesOfImgproxyMeanTheSame() throws {
        let loaded = try ServerConfiguration.load(
            arguments: [],
            environment: [
                "IMGPROXY_BIND": ":8080", "IMGPROXY_KEY": "736563726574,00ff", "IMGPROXY_SALT": "68656c6c6f,ff00",
                "IMGPROXY_SIGNATURE_SIZE": "8", "IMGPROXY_TTL": "3600", "IMGPROXY_QUALITY": "75",
                "IMGPROXY_FORMAT_QUALITY": "jpeg=70,avif=40", "IMGPROXY_LOCAL_FILESYSTEM_ROOT": "/tmp",
                "IMGPROXY_PRESETS": "small=rs:fit:100:100/q:50,default=el:1", "IMGPROXY_ONLY_PRESETS": "true",
                "IMGPROXY_ENABLE_WEBP_DETECTION": "false", "IMGPROXY_TIMEOUT": "20",
                "IMGPROXY_REQUESTS_QUEUE_SIZE": "100", "IMGPROXY_LOG_LEVEL": "warn", "IMGPROXY_LOG_FORMAT": "structured",
                "IMGPROXY_USE_ETAG": "true", "PATH": "/bin",
            ])
        var expected = ServerConfiguration()
        expected.bind = [.tcp(host: "0.0.0.0", port: 8080)]
        expected.keys = [Array("secret".utf8), [0x00, 0xFF]]
        expected.salts = [Array("hello".utf8), [0xFF, 0x00]]
        expected.signatureSize = 8
        expected.ttl = 3600
        expected.quality = 75
        expected.formatQuality = [.jpeg: 70, .avif: 40]
        expected.localRoot = "/tmp"
        expected.presets = ["small": "rs:fit:100:100/q:50", "default": "el:1"]
        expected.onlyPresets = true
        expected.autoWebP = false
        expected.timeout = 20
        expected.queueLimit = 100
        expected.logLevel = .warning
        #expect(loaded.configuration == expected)
        #expect(loaded.warnings == ["IMGPROXY_USE_ETAG has no effect"])
    }

    @Test func flagsOfListsMayBeRepeated() throws {
        let configuration = try load(["--bind", "127.0.0.1:1", "--bind=[::1]:2", "--http2=false"])
        #expect(configuration.bind == [.tcp(host: "127.0.0.1", port: 1), .tcp(host: "::1", port: 2)])
        #expect(!configuration.http2)
        #expect(try load(["--admin-bind", "off"]).adminBind.isEmpty)
    }

    @Test func switchesMayHaveAValue() throws {
        #expect(try !load(["--http2", "false"]).http2)
        #expect(try load(["--allow-loopback-sources", "on", "--http2", "off"]).allowLoopbackSources)
        let configuration = try load(["--allow-loopback-sources", "--allow-private-sources", "--http2=false"])
        #expect(configuration.allowLoopbackSources && configuration.allowPrivateSources && !configuration.http2)
    }

    @Test(arguments: [
        (["--http2", "maybe"], "--http2: “maybe” is not true or false"),
        (["--qualty", "3"], "--qualty: there is no such flag; did you mean “quality”?; see --help"),
        (["quality"], "“quality” is not a flag; see --help"),
        (["--quality"], "--quality: its value is missing"),
        (["--quality", "101"], "--quality: 101 is not between 1 and 100"),
        (["--quality", "high"], "--quality: “high” is not a whole number"),
        (["--quality", "1", "--quality", "2"], "--quality: it is given twice"),
        (["--timeout", "nan"], "--timeout: “nan” is not a number"),
        (["--timeout", "-1"], "--timeout: -1 is not between 0.1 and 3600"),
        (["--max-source-bytes", "5MB"], "--max-source-bytes: “5MB” is not a number of bytes, or of KiB, MiB or GiB"),
        (
            ["--max-source-bytes", "9999999999GiB"],
            "--max-source-bytes: “9999999999GiB” is not a number of bytes, or of KiB, MiB or GiB"
        ),
        (["--http2=maybe"], "--http2: “maybe” is not true or false"),
        (["--bind", "8080"], "--bind: “8080” is no address of the form HOST:PORT, [IPV6]:PORT or unix:/PATH"),
        (["--bind", "::1:80"], "--bind: “::1:80” has an IPv6 address without brackets"),
        (["--bind", "127.0.0.1:70000"],
            "--bind: “127.0.0.1:70000” is no address of the form HOST:PORT, [IPV6]:PORT or unix:/PATH"),
        (["--bind", "unix:relative"], "--bind: “unix:relative” is no absolute path of at most 107 bytes"),
        (["--bind", "127.0.0.1:8081"], "admin-bind: 127.0.0.1:8081 is an address of bind as well"),
        (["--bind", ""], "bind: at least one address is needed"),
        (["--key", "xyz"], "--key: a value is not hexadecimal"),
        (["--key", "00"], "key: there are 1 keys and 0 salts; every key needs a salt of its own"),
        (["--key", "00,11", "--salt", "22"], "key: there are 2 keys and 1 salts; every key needs a salt of its own"),
        (["--key-file", "/nonexistent/key"], "key-file: /nonexistent/key cannot be read"),
        (
            ["--bind", "0.0.0.0:80"],
            "bind: 0.0.0.0:80 is reachable from other machines, but URLs are not signed; set key and salt, "
                + "or allow-unsigned"
        ),
        (["--tls-key", "/k"], "tls-key: it needs tls-certificate"),
        (["--tls-certificate", "/c"], "tls-certificate: it needs tls-key"),
        (["--only-presets"], "only-presets: no preset is defined, so that every URL would be refused"),
        (["--presets", "a"], "--presets: “a” is not of the form NAME=VALUE"),
        (["--presets", "a=q:1,a=q:2"], "--presets: “a”: it is given twice"),
        (["--format-quality", "jpeg=0"], "--format-quality: “jpeg”: 0 is not between 1 and 100"),
        (["--format-quality", "jpe=5"], "--format-quality: “jpe”: “jpe” is not a format"),
        (["--arguments-separator", "::"], "--arguments-separator: it is not one character"),
        (["--allowed-sources", "https://*.a/"],
            "--allowed-sources: “https://*.a/” has a wildcard; only beginnings count"),
        (["--rate-burst", "5"], "rate-burst: it needs rate-limit"),
        (["--watermark-opacity", "0.5"], "watermark-opacity: it needs watermark"),
        (["--disk-cache-bytes", "2GiB"], "disk-cache-bytes: it needs disk-cache"),
        (["--trusted-proxies", "10.0.0.0/33"], "--trusted-proxies: “10.0.0.0/33” is not an address or network"),
        (["--fallback-status", "100"], "--fallback-status: 100 is not 0 or from 200 on"),
        (["--log-level", "loud"], "--log-level: “loud” is not one of trace, debug, info, notice, warning, error, critical"),
        (["--log-format", "xml"], "--log-format: “xml” is not json or text"),
        (["--otlp-endpoint", "collector:4318"], "--otlp-endpoint: it is not an http or https URL"),
        (["--otlp-headers", "a b=c"], "--otlp-headers: “a b”: it is not the name of a field"),
        (["--user-agent", "a\nb"], "--user-agent: the text has several lines"),
        (["--config", "/nonexistent.toml"], "/nonexistent.toml: the file cannot be read"),
    ] as [([String], String)])
    func refusedFlagsAreOneLine(_ arguments: [String], _ line: String) {
        #expect(refusal(arguments) == line)
    }

    @Test func variablesOfTheLibraryAreNoSettings() throws {
        let environment = ["VITRINE_WORKER": "/usr/bin/vitrine-worker", "VITRINE_STRICT": "1", "VITRINE_QUALITY": "70"]
        let loaded = try ServerConfiguration.load(arguments: [], environment: environment)
        #expect(loaded.configuration.quality == 70)
        #expect(loaded.given == ["quality"])
        #expect(loaded.warnings.isEmpty)
    }

    @Test(arguments: [
        (["VITRINE_QUALTY": "3"], "VITRINE_QUALTY: there is no such setting; did you mean “quality”?"),
        (["VITRINE_QUALITY": "x"], "VITRINE_QUALITY: “x” is not a whole number"),
        (["VITRINE_QUALITY": "5", "IMGPROXY_QUALITY": "6"], "IMGPROXY_QUALITY: it contradicts VITRINE_QUALITY"),
        (["IMGPROXY_SECRET": "x"], "IMGPROXY_SECRET: requests with a secret are not supported; use signatures"),
        (["IMGPROXY_KEY": "00"], "key: there are 1 keys and 0 salts; every key needs a salt of its own"),
    ] as [([String: String], String)])
    func refusedVariablesAreOneLine(_ environment: [String: String], _ line: String) {
        #expect(refusal([], environment) == line)
    }

    @Test(arguments: [
        ("quality = 80\nquality = 81", "line 2: “quality” is repeated"),
        ("qualiti = 80", "qualiti: there is no such setting; did you mean “quality”?"),
        ("quality = \"x\"", "quality: “x” is not a whole number"),
        ("quality = true", "quality: true is not a whole number"),
        ("quality 80", "line 1: “=” is missing after the name"),
        ("quality = 80 81", "line 1: there is text after the value"),
        ("a = 1979-05-27", "line 1: “1979-05-27” is no string, number or boolean"),
        ("a = \"\"\"\nx\"\"\"", "line 1: strings of several lines are not supported"),
        ("[[a]]", "line 1: arrays of tables are not supported"),
        ("[presets]\na = 'x'\n[presets]", "line 3: the table “presets” is repeated"),
        ("a = \"x\ny\"", "line 1: a string does not end on its line"),
        ("a = 012", "line 1: “012” is no string, number or boolean"),
        ("a = [1, 2", "line 1: “,” or “]” is missing in an array"),
        ("a = { b = 1", "line 1: “}” is missing after an inline table"),
        ("a = \"\\q\"", "line 1: a string has an invalid escape"),
        ("a.b = 1\na = 2", "line 2: “a” is repeated"),
        ("a = 1\n[a]", "line 2: “a” is a value and a table"),
        ("a =", "line 1: a value is missing"),
    ])
    func refusedFilesAreOneLineWithTheirPlace(_ text: String, _ line: String) throws {
        try withFile(text) { #expect(refusal(["--config", $0]) == "\($0): \(line)") }
    }

    @Test(arguments: [
        ("[1]", "is not a JSON object of settings"), ("{", "is not a JSON object of settings"),
        ("{\"quality\": null}", "null is not a value"),
        ("{\"quality\": 80.5}", "quality: 80.5 is not a whole number"),
        ("{\"bind\": [1]}", "bind: 1 is not a text"),
    ])
    func refusedJSONIsOneLine(_ text: String, _ line: String) throws {
        try withFile(text, name: "a.json") { #expect(refusal(["--config", $0]) == "\($0): \(line)") }
    }

    @Test func readsTOML() throws {
        let values = try TOMLReader.read(
            """
            a = 1_000
            b = -2.5e1 # comment
            "c d" = "é\\u00e9\\t\\"#\\""
            e.f = 'C:\\path'
            g = [ 1, # one
                  2, ]
            h = { i = true, j.k = "x" }
            l = 0\r
            [m.n]
            o = false
            """)
        #expect(
            values == [
                "a": .integer(1000), "b": .number(-25), "c d": .text("éé\t\"#\""),
                "e": .table(["f": .text("C:\\path")]), "g": .list([.integer(1), .integer(2)]),
                "h": .table(["i": .boolean(true), "j": .table(["k": .text("x")])]), "l": .integer(0),
                "m": .table(["n": .table(["o": .boolean(false)])]),
            ])
    }

    @Test func printedConfigurationIsReadAgainAndHasNoSecrets() throws {
        var configuration = ServerConfiguration()
        configuration.quality = 33
        configuration.presets = ["a b": "q:\"1\""]
        configuration.formatQuality = [.webp: 12]
        configuration.trustedProxies = [try AddressRange("2001:db8::/32")]
        configuration.lameDuck = 0.25
        #expect(try withFile(configuration.toml()) { try load(["--config", $0]) } == configuration)

        configuration.keys = [Array("a secret key".utf8)]
        configuration.salts = [Array("a secret salt".utf8)]
        configuration.thumborKey = "thumbor secret"
        configuration.sourceHeaders = ["example.com": ["Authorization": "Bearer secret"]]
        configuration.otlpHeaders = ["X-Token": "secret"]
        configuration.trustedSignatures = ["secret"]
        configuration.fleet.redis = "redis://user:secret@example.org"
        (configuration.fleet.redisPassword, configuration.fleet.redisSentinelPassword) = ("secret", "secret")
        (configuration.s3.accessKey, configuration.s3.secretKey) = ("access", "secret")
        for text in [configuration.toml(), configuration.json] {
            #expect(!text.lowercased().replacing("s3-secret-key", with: "").contains("secret"))
            #expect(!text.contains("6120736563726574"))
            #expect(text.contains("\"***\""))
            #expect(text.contains("example.com"))
        }
    }

    @Test func keysOfFilesAreReadAndChecked() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let key = directory.appendingPathComponent("key").path
        let salt = directory.appendingPathComponent("salt").path
        try Data("00ff\n\n 11\n".utf8).write(to: URL(fileURLWithPath: key))
        try Data("aa\nbb\n".utf8).write(to: URL(fileURLWithPath: salt))
        let configuration = try load(["--key-file", key, "--salt-file", salt, "--bind", "0.0.0.0:80"])
        #expect(configuration.keys == [[0x00, 0xFF], [0x11]])
        #expect(configuration.salts == [[0xAA], [0xBB]])
        try Data("00ff\nnot hexadecimal\n".utf8).write(to: URL(fileURLWithPath: key))
        #expect(
            refusal(["--key-file", key, "--salt-file", salt]) == "key-file: \(key): line 2 is not hexadecimal")
        try Data(" \n".utf8).write(to: URL(fileURLWithPath: salt))
        #expect(refusal(["--salt-file", salt]) == "salt-file: \(salt) is empty")
    }

    @Test func filesAreCheckedBeforeTheServerListens() throws {
        func problem(_ change: (inout ServerConfiguration) -> Void) -> String? {
            var configuration = ServerConfiguration()
            change(&configuration)
            do {
                try configuration.checkFiles()
                return nil
            } catch {
                return "\(error)"
            }
        }
        #expect(problem { _ in } == nil)
        #expect(problem { $0.localRoot = "/nonexistent" } == "local-root: /nonexistent is not a readable directory")
        #expect(problem { $0.localRoot = "/dev/null" } == "local-root: /dev/null is not a readable directory")
        #expect(problem { $0.watermark = "/nonexistent" } == "watermark: /nonexistent cannot be read")
        #expect(problem { $0.fallbackImage = "/tmp" } == "fallback-image: /tmp cannot be read")
        #expect(problem { $0.tlsKey = "/nonexistent" } == "tls-key: /nonexistent cannot be read")
        // A place where even root cannot write.
        #expect(problem { $0.diskCache = "/proc/vitrine" } == "disk-cache: /proc/vitrine is not a writable directory")
    }

    @Test func onlyReloadableSettingsAreReloaded() throws {
        var old = ServerConfiguration()
        old.quality = 10
        var new = old
        new.quality = 20
        new.keys = [[1]]
        new.salts = [[2]]
        new.workers = 5
        new.bind = [.unix("/tmp/x")]
        #expect(old.differencesThatNeedARestart(new) == ["bind", "workers"])
        let applied = old.withReloadableSettings(of: new)
        #expect(applied.quality == 20 && applied.keys == [[1]] && applied.workers == 0 && applied.bind == old.bind)
    }
}

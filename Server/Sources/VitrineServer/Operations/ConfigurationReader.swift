import Foundation

/// Reads the settings of flags, of the environment and of a file.
struct ConfigurationReader {
    /// A setting and the value that one origin gives it.
    private struct GivenValue {
        let setting: Setting
        let value: SettingValue
        /// The flag, the variable, or the file and the key.
        let origin: String
    }

    private let environment: [String: String]
    private let settings = Dictionary(uniqueKeysWithValues: ServerSettings.all.map { ($0.name, $0) })

    init(_ environment: [String: String]) { self.environment = environment }

    /// Reads flags, then the environment, then the file; the first that gives a setting decides.
    func read(_ arguments: [String]) throws -> ServerConfiguration.Loaded {
        var loaded = ServerConfiguration.Loaded(configuration: ServerConfiguration())
        var file = environment["VITRINE_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        var layers = [try flags(arguments, &file)]
        layers.append(try variables(&loaded.warnings))
        if let file { layers.append(try values(ofFile: file)) }

        for layer in layers {
            for given in layer where loaded.given.insert(given.setting.name).inserted {
                do {
                    try given.setting.set(&loaded.configuration, given.value)
                } catch let error as SettingError {
                    throw ConfigurationError("\(given.origin): \(error.reason)")
                }
            }
        }
        try readCredentials(into: &loaded.configuration)
        try loaded.configuration.validate()
        return loaded
    }

    /// The settings that flags give, and the path of `--config`.
    private func flags(_ arguments: [String], _ file: inout String?) throws -> [GivenValue] {
        var flags: [String: SettingValue] = [:]
        var order: [String] = []
        var index = 0
        while index < arguments.count {
            let argument = arguments[index]
            index += 1
            guard argument.hasPrefix("--"), argument.count > 2 else {
                throw ConfigurationError("“\(argument)” is not a flag; see --help")
            }
            let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            let isSwitch = settings[name]?.isSwitch ?? false
            guard name == "config" || settings[name] != nil else {
                throw ConfigurationError("--\(name): there is no such flag\(suggestion(for: name)); see --help")
            }
            let text: String
            if parts.count == 2 {
                text = String(parts[1])
            } else if isSwitch, index == arguments.count || arguments[index].hasPrefix("--") {
                text = "true"
            } else if index < arguments.count {
                text = arguments[index]
                index += 1
            } else {
                throw ConfigurationError("--\(name): its value is missing")
            }
            if name == "config" {
                file = text
            } else if let earlier = flags[name] {
                guard settings[name]?.isList == true, case .text(let first) = earlier else {
                    throw ConfigurationError("--\(name): it is given twice")
                }
                flags[name] = .text("\(first),\(text)")
            } else {
                flags[name] = .text(text)
                order.append(name)
            }
        }
        return order.compactMap { name in
            guard let setting = settings[name], let value = flags[name] else { return nil }
            return GivenValue(setting: setting, value: value, origin: "--\(name)")
        }
    }

    /// The settings that the environment gives.
    private func variables(_ warnings: inout [String]) throws -> [GivenValue] {
        var result: [GivenValue] = []
        var known: Set<String> = ["VITRINE_CONFIG"]
        // Variables of the library and of its builds.
        known.formUnion(
            ["AGENT", "BROWSER", "PDF", "SANITIZE_THREADS", "STRICT", "TEXT", "VIDEO", "WORKER", "WORKER_SANDBOX"]
                .map { "VITRINE_" + $0 })
        for setting in ServerSettings.all {
            known.insert(setting.variable)
            known.formUnion(setting.aliases)
            var found: (name: String, text: String)?
            for name in [setting.variable] + setting.aliases {
                // An empty variable is one that is not set.
                guard let text = environment[name], !text.isEmpty else { continue }
                if let found, found.text != text {
                    throw ConfigurationError("\(name): it contradicts \(found.name)")
                }
                found = found ?? (name, text)
            }
            if let found { result.append(GivenValue(setting: setting, value: .text(found.text), origin: found.name)) }
        }
        for name in environment.keys.sorted() where !known.contains(name) && environment[name] != "" {
            if name.hasPrefix("VITRINE_") {
                let similar = suggestion(for: name.dropFirst(8).lowercased().replacing("_", with: "-"))
                throw ConfigurationError("\(name): there is no such setting\(similar)")
            }
            guard name.hasPrefix("IMGPROXY_") else { continue }
            if let reason = Self.refusedVariables[name] { throw ConfigurationError("\(name): \(reason)") }
            warnings.append("\(name) has no effect")
        }
        return result
    }

    /// Variables of imgproxy that limit or protect something. Ignoring one would be less safe than its operator thinks.
    private static let refusedVariables = [
        "IMGPROXY_SECRET": "requests with a secret are not supported; use signatures",
        "IMGPROXY_PATH_PREFIX": "prefixes of paths are not supported; remove the prefix in the proxy in front",
        "IMGPROXY_MAX_ANIMATION_FRAMES": "limits of animations are not configurable",
        "IMGPROXY_MAX_ANIMATION_FRAME_RESOLUTION": "limits of animations are not configurable",
        "IMGPROXY_MAX_CHAINED_PIPELINES": "pipelines are not chained; remove the variable",
        "IMGPROXY_ALLOWED_INFO_OPTIONS": "options of /info are not limited apart; use VITRINE_ALLOWED_OPTIONS",
        "IMGPROXY_INFO_ONLY_PRESETS": "presets of /info are those of images; use VITRINE_ONLY_PRESETS",
        "IMGPROXY_SOURCE_URL_ENCRYPTION_KEY": "encrypted sources are not supported; use signatures",
        "IMGPROXY_VIDEO_THUMBNAIL_MAX_ANALYZE_DURATION": "the analysis of videos has limits of its own",
        "IMGPROXY_S3_ALLOWED_BUCKETS": "buckets are listed in VITRINE_S3_BUCKETS, and no others are loaded",
        "IMGPROXY_S3_DENIED_BUCKETS": "buckets are listed in VITRINE_S3_BUCKETS, and no others are loaded",
        "IMGPROXY_GCS_ALLOWED_BUCKETS": "Google Cloud Storage is not supported; use its S3 interface",
        "IMGPROXY_GCS_DENIED_BUCKETS": "Google Cloud Storage is not supported; use its S3 interface",
        "IMGPROXY_ABS_ALLOWED_BUCKETS": "Azure Blob Storage is not supported",
        "IMGPROXY_ABS_DENIED_BUCKETS": "Azure Blob Storage is not supported",
        "IMGPROXY_SWIFT_ALLOWED_BUCKETS": "OpenStack Swift is not supported; use its S3 interface",
        "IMGPROXY_SWIFT_DENIED_BUCKETS": "OpenStack Swift is not supported; use its S3 interface",
        "IMGPROXY_PROMETHEUS_BIND": "metrics are on the admin listener; use VITRINE_ADMIN_BIND",
        "IMGPROXY_NETWORK": "the kind of a socket is part of VITRINE_BIND: HOST:PORT or unix:/PATH",
    ]

    private func values(ofFile path: String) throws -> [GivenValue] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw ConfigurationError("\(path): the file cannot be read")
        }
        let values: [String: SettingValue]
        do {
            if path.hasSuffix(".json") {
                values = try SettingValue.json(data)
            } else {
                guard let text = String(validating: data, as: UTF8.self) else {
                    throw SettingError("the file is not UTF-8")
                }
                values = try TOMLReader.read(text)
            }
        } catch let error as SettingError {
            throw ConfigurationError("\(path): \(error.reason)")
        }
        return try values.keys.sorted().map { name in
            guard let setting = settings[name], let value = values[name] else {
                throw ConfigurationError("\(path): \(name): there is no such setting\(suggestion(for: name))")
            }
            return GivenValue(setting: setting, value: value, origin: "\(path): \(name)")
        }
    }

    /// `, did you mean “…”?` if a setting's name is similar.
    private func suggestion(for name: String) -> String {
        let distances = ServerSettings.all.map { ($0.name, Self.distance(Array(name.utf8), Array($0.name.utf8))) }
        let similar = distances.min { $0.1 < $1.1 }
        guard let similar, similar.1 <= max(2, name.count / 4) else { return "" }
        return "; did you mean “\(similar.0)”?"
    }

    /// The Levenshtein distance.
    private static func distance(_ first: [UInt8], _ second: [UInt8]) -> Int {
        var row = Array(0...second.count)
        for (i, a) in first.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in second.enumerated() {
                (diagonal, row[j + 1]) = (row[j + 1], min(row[j] + 1, row[j + 1] + 1, diagonal + (a == b ? 0 : 1)))
            }
        }
        return row[second.count]
    }

    /// Adds the keys and salts of files, one a line.
    private func readCredentials(into configuration: inout ServerConfiguration) throws {
        func pairs(_ path: String, _ name: String) throws -> [[UInt8]] {
            guard !path.isEmpty else { return [] }
            guard let data = FileManager.default.contents(atPath: path),
                let text = String(validating: data, as: UTF8.self)
            else { throw ConfigurationError("\(name): \(path) cannot be read") }
            let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
                .filter { !$0.isEmpty }
            guard !lines.isEmpty else { throw ConfigurationError("\(name): \(path) is empty") }
            return try lines.enumerated().map { number, line in
                guard let bytes = [UInt8](hexadecimal: line), !bytes.isEmpty else {
                    throw ConfigurationError("\(name): \(path): line \(number + 1) is not hexadecimal")
                }
                return bytes
            }
        }
        configuration.keys += try pairs(configuration.keyFile, "key-file")
        configuration.salts += try pairs(configuration.saltFile, "salt-file")
    }
}

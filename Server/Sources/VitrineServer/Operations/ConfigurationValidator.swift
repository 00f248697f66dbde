import Foundation

/// The rules that the values of a configuration keep together.
struct ConfigurationValidator {
    let configuration: ServerConfiguration

    /// Checks the values, and the addresses on which the server listens.
    ///
    /// - Parameter addresses: Nil for a socket that does not tell its own.
    func validate(listening addresses: [ListenAddress?]) throws {
        let (keys, salts) = (configuration.keys.count, configuration.salts.count)
        guard keys == salts else {
            throw ConfigurationError(
                "key: there are \(keys) keys and \(salts) salts; every key needs a salt of its own")
        }
        try requireSignatures(on: addresses)
        try ConfigurationError.requireBoth(
            ("tls-certificate", configuration.tlsCertificate), ("tls-key", configuration.tlsKey))
        guard !configuration.bind.isEmpty else { throw ConfigurationError("bind: at least one address is needed") }
        for address in configuration.adminBind where configuration.bind.contains(address) {
            if case .tcp(_, 0) = address { continue }
            throw ConfigurationError("admin-bind: \(address) is an address of bind as well")
        }
        guard !configuration.onlyPresets || !configuration.presets.isEmpty else {
            throw ConfigurationError("only-presets: no preset is defined, so that every URL would be refused")
        }
        try checkIIIF()
        guard !configuration.gallery || !configuration.localRoot.isEmpty else {
            throw ConfigurationError("gallery: it needs local-root")
        }
        guard configuration.galleryToken.isEmpty || configuration.gallery else {
            throw ConfigurationError("gallery-token: it needs gallery")
        }
        guard configuration.rateBurst == 0 || configuration.rateLimit > 0 else {
            throw ConfigurationError("rate-burst: it needs rate-limit")
        }
        // A printed configuration gives every setting, most of them with their defaults.
        let defaults = ServerConfiguration()
        guard !configuration.watermark.isEmpty || configuration.watermarkOpacity == defaults.watermarkOpacity else {
            throw ConfigurationError("watermark-opacity: it needs watermark")
        }
        guard !configuration.diskCache.isEmpty || configuration.diskCacheBytes == defaults.diskCacheBytes else {
            throw ConfigurationError("disk-cache-bytes: it needs disk-cache")
        }
        try configuration.fleet.validate()
        try configuration.s3.validate()
    }

    /// Refuses to serve unsigned URLs to other machines.
    private func requireSignatures(on addresses: [ListenAddress?]) throws {
        guard !configuration.isSigned, !configuration.allowUnsigned,
            let open = addresses.first(where: { $0?.isLocal != true })
        else { return }
        // What does not say where it listens may listen anywhere.
        let place = open?.description ?? "an inherited socket"
        throw ConfigurationError(
            "bind: \(place) is reachable from other machines, but URLs are not signed; set key and salt, "
                + "or allow-unsigned")
    }

    private func checkIIIF() throws {
        guard
            !configuration.iiif || !configuration.localRoot.isEmpty || !configuration.baseURL.isEmpty
                || !configuration.allowedSources.isEmpty
        else {
            throw ConfigurationError("iiif: it needs local-root, base-url or allowed-sources")
        }
        guard configuration.publicURL.isEmpty || IIIFDocument.isPublicURL(configuration.publicURL) else {
            throw ConfigurationError("public-url: it is no URL of http or https without a slash at the end")
        }
    }

    /// Checks files and directories that the server needs: once, before it listens.
    func checkFiles() throws {
        func directory(_ path: String) -> Bool {
            var isDirectory: ObjCBool = false
            return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory.boolValue
        }
        if !configuration.localRoot.isEmpty {
            guard directory(configuration.localRoot),
                FileManager.default.isReadableFile(atPath: configuration.localRoot)
            else {
                throw ConfigurationError("local-root: \(configuration.localRoot) is not a readable directory")
            }
        }
        for (name, path) in [
            ("tls-certificate", configuration.tlsCertificate), ("tls-key", configuration.tlsKey),
            ("watermark", configuration.watermark),
            ("fallback-image", configuration.fallbackImage),
            ("redis-password-file", configuration.fleet.redisPasswordFile),
            ("redis-tls-ca", configuration.fleet.redisAuthorities),
            ("redis-tls-certificate", configuration.fleet.redisCertificate),
            ("redis-tls-key", configuration.fleet.redisKey), ("s3-credentials-file", configuration.s3.credentialsFile),
            ("s3-tls-ca", configuration.s3.authorities),
        ] where !path.isEmpty {
            guard !directory(path), let file = FileHandle(forReadingAtPath: path) else {
                throw ConfigurationError("\(name): \(path) cannot be read")
            }
            try? file.close()
        }
        if !configuration.diskCache.isEmpty {
            // Attempted, because permissions say nothing about a read-only file system.
            let probe = "\(configuration.diskCache)/.vitrine-\(ProcessInfo.processInfo.processIdentifier)"
            do {
                try FileManager.default.createDirectory(
                    atPath: configuration.diskCache, withIntermediateDirectories: true)
                try Data().write(to: URL(fileURLWithPath: probe))
                try FileManager.default.removeItem(atPath: probe)
            } catch {
                throw ConfigurationError("disk-cache: \(configuration.diskCache) is not a writable directory")
            }
        }
    }
}

/// Reads processing URLs in imgproxy's grammar.
///
/// After the signature a path has options, then the source, then optionally a format:
///
/// ```
/// /rs:fill:300:400/g:sm/plain/https%3A%2F%2Fexample.com%2Fa.jpg@webp
/// /rs:fill:300:400/g:sm/aHR0cHM6Ly9leGFtcGxlLmNvbS9hLmpwZw.webp
/// ```
///
/// `Documentation/Options.md` has all options. A later option overrides an earlier one. Nothing is guessed: unknown
/// options, unsupported options and invalid arguments are errors that name the option.
package struct NativeGrammar: Sendable {
    /// Named lists of options, for example `["thumbnail": "rs:fill:100:100/q:70"]`. The preset `default` applies to
    /// every URL, before the URL's own options.
    package let presets: [String: String]
    /// Whether URLs have names of presets in the place of options.
    package let onlyPresets: Bool
    /// The options that URLs may have, by any of their names; nil for all. Presets may have all options.
    package let allowedOptions: Set<String>?
    /// The separator between an option's name and its arguments.
    package let argumentsSeparator: Character
    /// The options of a URL without options and presets.
    package let defaults: ProcessingOptions

    /// The rules that ``parse(_:)`` applies, and those of all other grammars beside it.
    package let rules: ProcessingRules

    /// Creates a grammar.
    ///
    /// Check `presets` and `allowedOptions` by ``validate()`` before the first request.
    package init(
        presets: [String: String] = [:], onlyPresets: Bool = false, allowedOptions: Set<String>? = nil,
        argumentsSeparator: Character = ":", defaults: ProcessingOptions = ProcessingOptions()
    ) {
        self.presets = presets
        self.onlyPresets = onlyPresets
        self.allowedOptions = allowedOptions
        self.argumentsSeparator = argumentsSeparator
        self.defaults = defaults
        rules = ProcessingRules(onlyPresets: onlyPresets, allowedOptions: allowedOptions)
    }

    /// The options of a URL that asks for nothing, in every grammar: the defaults under the preset `default`.
    ///
    /// - Throws: ``RequestError`` for presets that ``validate()`` refuses.
    package func base() throws(RequestError) -> ProcessingOptions {
        var options = defaults
        var applied = AppliedPresets()
        if presets["default"] != nil { try apply(preset: "default", to: &options, &applied) }
        return options
    }

    /// Reads the part of a URL's path behind the signature.
    ///
    /// - Parameter path: As the client sent it, percent escapes included. A query is ignored.
    /// - Throws: ``RequestError`` with status 400, or 414 for more than 8,192 bytes. The presets of a grammar that
    ///   ``validate()`` accepts cause no error.
    package func parse(_ path: Substring) throws(RequestError) -> ImageURL {
        try GrammarText.checkPath(path)
        var segments = GrammarText.split(GrammarText.withoutQuery(path), at: "/")[...]
        if segments.first?.isEmpty == true { segments = segments.dropFirst() }
        var options = defaults
        var applied = AppliedPresets()
        if presets["default"] != nil { try apply(preset: "default", to: &options, &applied) }
        var asked: [Set<NativeOption>] = []
        if onlyPresets {
            guard let names = segments.popFirst(), !names.isEmpty else { throw .missingSource }
            let arguments = try OptionArguments(option: "preset", encoded: split(names) ?? [names])
            for name in arguments.values { try apply(preset: name, to: &options, &applied) }
        } else {
            asked = try applyOptions(&segments, to: &options, &applied)
        }
        let (source, format) = try self.source(segments)
        if let format, !options.isRaw { options.format = try GrammarText.resultFormat(format, option: "extension") }
        try options.checkResultSides()
        let url = ImageURL(
            grammar: .native, options: options, source: source, request: onlyPresets ? .presets : .options(asked))
        try rules.check(url)
        return url
    }

    /// Applies the options at the front of the segments and removes them. Returns the options.
    private func applyOptions(
        _ segments: inout ArraySlice<Substring>, to options: inout ProcessingOptions,
        _ applied: inout AppliedPresets
    ) throws(RequestError) -> [Set<NativeOption>] {
        var asked: [Set<NativeOption>] = []
        while let segment = segments.first, let parts = split(segment) {
            segments = segments.dropFirst()
            let option = try NativeOption.find(parts[0])
            asked.append([option])
            try apply(option, arguments: parts.dropFirst(), to: &options, applied: &applied)
        }
        return asked
    }

    /// The parts of an option; nil if the segment is none, but the source begins.
    private func split(_ segment: Substring) -> [Substring]? {
        var parts = GrammarText.split(segment, at: argumentsSeparator)
        // Some clients escape the colon.
        if parts.count == 1, argumentsSeparator == ":", segment.contains("%") {
            let unescaped = segment.replacing("%3A", with: ":").replacing("%3a", with: ":")
            parts = GrammarText.split(unescaped, at: ":")
            guard let name = parts.first, onlyPresets || NativeOption.named[String(name)] != nil else { return nil }
        }
        return parts.count > 1 ? parts : nil
    }

    private func apply(
        _ option: NativeOption, arguments: ArraySlice<Substring>, to options: inout ProcessingOptions,
        applied: inout AppliedPresets
    ) throws(RequestError) {
        let arguments = try OptionArguments(option: option.rawValue, encoded: arguments)
        if option == .preset {
            for name in arguments.values { try apply(preset: name, to: &options, &applied) }
        } else {
            try option.apply(arguments, to: &options)
        }
    }

    // MARK: Presets

    /// Reads definitions of presets, each of the form `name=option/option`. Blank lines and lines that begin with `#`
    /// are comments. A later definition of a name replaces an earlier one.
    ///
    /// - Throws: ``RequestError`` with the code `invalid-preset` for a line of another form.
    package static func presets(parsing lines: some Sequence<String>) throws(RequestError) -> [String: String] {
        var presets: [String: String] = [:]
        for line in lines {
            let line = GrammarText.trimmed(line[...])
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw RequestError(
                    400, code: "invalid-preset",
                    reason: "A preset has the form name=options, not \(GrammarText.printable(line)).")
            }
            let (name, value) = (GrammarText.trimmed(parts[0]), GrammarText.trimmed(parts[1]))
            guard !name.isEmpty, !value.isEmpty else {
                throw RequestError(400, code: "invalid-preset", reason: "A preset has a name and at least one option.")
            }
            presets[String(name)] = String(value)
        }
        return presets
    }

    /// Checks all presets and the names of allowed options.
    ///
    /// - Throws: ``RequestError`` that names the preset, for options that a URL could not have, and for a preset that
    ///   contains itself; or one that names an allowed option that does not exist.
    package func validate() throws(RequestError) {
        for name in presets.keys.sorted() {
            do throws(RequestError) {
                _ = try options(ofPreset: name)
            } catch {
                throw RequestError(
                    error.status, code: error.code,
                    reason: "In the preset \(GrammarText.printable(name)): \(error.reason)")
            }
        }
        for name in (allowedOptions ?? []).sorted() { _ = try NativeOption.find(name[...]) }
    }

    /// Returns the options of a preset alone.
    ///
    /// - Throws: ``RequestError`` for options that a URL could not have, and for a preset that contains itself.
    func options(ofPreset name: String) throws(RequestError) -> ProcessingOptions {
        var options = ProcessingOptions()
        var applied = AppliedPresets()
        try apply(preset: name, to: &options, &applied)
        try options.checkResultSides()
        return options
    }

    /// The presets of one URL.
    private struct AppliedPresets {
        /// The presets that are being applied, each named by the one before.
        var stack: [String] = []
        /// How often presets were applied. Presets that name others many times over are exponential work.
        var count = 0
    }

    private func apply(
        preset name: String, to options: inout ProcessingOptions, _ applied: inout AppliedPresets
    ) throws(RequestError) {
        guard let definition = presets[name] else {
            throw RequestError(
                400, code: "unknown-preset", reason: "There is no preset \(GrammarText.printable(name)).")
        }
        guard !applied.stack.contains(name) else {
            throw RequestError(
                400, code: "recursive-preset", reason: "The preset \(GrammarText.printable(name)) contains itself.")
        }
        applied.count += 1
        guard applied.count <= 64 else { throw .invalidArgument("preset", "at most 64 presets in all") }
        applied.stack.append(name)
        for segment in GrammarText.split(definition[...], at: "/") {
            guard let parts = split(segment) else {
                throw RequestError(
                    400, code: "invalid-preset",
                    reason: "\(GrammarText.printable(segment)) is not an option with arguments.")
            }
            try apply(NativeOption.find(parts[0]), arguments: parts.dropFirst(), to: &options, applied: &applied)
        }
        applied.stack.removeLast()
    }

    // MARK: Source

    /// The source and the format that follows it.
    private func source(_ segments: ArraySlice<Substring>) throws(RequestError) -> (String, format: Substring?) {
        guard let first = segments.first, segments.count > 1 || !first.isEmpty else { throw .missingSource }
        if first == "plain" { return try plainSource(segments.dropFirst()) }
        guard first != "enc" || segments.count == 1 else {
            throw .unsupportedOption("enc", "sources are not encrypted")
        }
        guard ProcessingOptions.ResizingType(rawValue: String(first)) == nil || segments.count == 1 else {
            throw RequestError(
                400, code: "malformed-path",
                reason: "Write /resize:fill:300:400/ instead of the old form /fill/300/400/.")
        }
        let parts = GrammarText.split(segments.joined(separator: "")[...], at: ".")
        let format = try extensionPart(parts)
        return (try GrammarText.source(GrammarText.base64Decoded(parts[0])), format)
    }

    private func plainSource(
        _ segments: ArraySlice<Substring>
    ) throws(RequestError) -> (String, format: Substring?) {
        let joined = GrammarText.restoringSlashes(of: segments.joined(separator: "/")[...])
        let parts = GrammarText.split(joined, at: "@")
        let format = try extensionPart(parts)
        return (try GrammarText.source(GrammarText.percentDecoded(parts[0])), format)
    }

    private func extensionPart(_ parts: [Substring]) throws(RequestError) -> Substring? {
        guard parts.count <= 2 else {
            throw RequestError(
                400, code: "invalid-source",
                reason: "The source has several formats; escape @ as %40 in plain sources.")
        }
        guard parts.count == 2, !parts[1].isEmpty else { return nil }
        return parts[1]
    }
}

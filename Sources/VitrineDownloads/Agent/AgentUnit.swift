import VitrineCore

/// The agent as a unit of the user's systemd: started with the session, and again if it is killed.
extension DownloadAgent {
    /// What the unit is called.
    public static let unitName = "vitrine-agent.service"

    /// The unit (systemd.service(5)).
    ///
    /// - Throws: ``DownloadError/agent(reason:)`` if the program is not there.
    public func systemdUnit() throws(DownloadError) -> String {
        guard let program else {
            throw .agent(
                reason: "\(AgentLauncher.program) was not found: \(HelperProgram.advice(for: AgentLauncher.program))")
        }
        return """
            [Unit]
            Description=Downloads that outlive the programs that asked for them

            [Service]
            ExecStart=\(Self.quoted(program)) --idle never
            Restart=on-failure

            [Install]
            WantedBy=default.target

            """
    }

    /// Writes the unit to the user's configuration; it is not enabled by that.
    ///
    /// - Returns: Its path.
    public func install() async throws(DownloadError) -> String {
        let unit = try systemdUnit()
        let directory = FilePath.join(Directories.current.configuration, "systemd/user")
        let path = FilePath.join(directory, Self.unitName)
        return try await DownloadEngine.onFiles { () throws(FileError) in
            try Directory.create(directory)
            try AtomicFile.write(Array(unit.utf8), to: path)
            return path
        }
    }

    /// A word as systemd reads it: in quotes, with what it would replace doubled.
    static func quoted(_ word: String) -> String {
        var text = "\""
        for character in word {
            switch character {
            case "\\", "\"": text += "\\" + String(character)
            case "%", "$": text += String(character) + String(character)
            default: text.append(character)
            }
        }
        return text + "\""
    }
}

#if Macros
import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// What the macros tell programmers.
struct Complaint: DiagnosticMessage {
    let message: String
    private let identifier: String
    let severity: DiagnosticSeverity

    init(_ message: String, _ identifier: String, severity: DiagnosticSeverity = .error) {
        (self.message, self.identifier, self.severity) = (message, identifier, severity)
    }

    var diagnosticID: MessageID { MessageID(domain: "VitrineModels", id: identifier) }
}

/// What a fix-it says it does.
struct Remedy: FixItMessage {
    let message: String
    private let identifier: String

    init(_ message: String, _ identifier: String) { (self.message, self.identifier) = (message, identifier) }

    var fixItID: MessageID { MessageID(domain: "VitrineModels", id: identifier) }
}

extension FixIt {
    /// Puts one piece of syntax in another's place.
    init(_ remedy: Remedy, replacing old: some SyntaxProtocol, with new: some SyntaxProtocol) {
        self.init(message: remedy, changes: [.replace(oldNode: Syntax(old), newNode: Syntax(new))])
    }
}

/// Collects complaints, or drops them in the roles of a macro that are not the first.
struct Complaints<Context: MacroExpansionContext> {
    let context: Context
    let isReporting: Bool

    func report(_ complaint: Complaint, at node: some SyntaxProtocol, fixIts: [FixIt] = []) {
        guard isReporting else { return }
        context.diagnose(Diagnostic(node: Syntax(node), message: complaint, fixIts: fixIts))
    }
}
#endif

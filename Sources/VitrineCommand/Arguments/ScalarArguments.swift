import ArgumentParser
import VitrineCore
import VitrineNetwork

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Times of entries as text.
enum CacheMoment {
    /// Returns a time since 1970 as ISO 8601 in UTC, to the second.
    static func text(_ time: Duration) -> String {
        Date(timeIntervalSince1970: TimeInterval(time.components.seconds)).formatted(.iso8601)
    }
}

/// An age on the command line: `90s`, `15m`, `12h`, `30d`, `4w`; a number without a unit is in days.
struct AgeArgument: ExpressibleByArgument {
    let duration: Duration

    init?(argument: String) {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800]
        var number = argument[...]
        var unit = 86_400.0
        if let last = number.last, let factor = units[last] {
            unit = factor
            number.removeLast()
        }
        guard let value = Double(number), value >= 0, value * unit <= 1e12 else { return nil }
        duration = .seconds(value * unit)
    }
}

/// A size on the command line: `4096`, `64k`, `1.5GiB`.
struct ByteCountArgument: ExpressibleByArgument {
    let size: ByteCount

    init?(argument: String) {
        guard let size = ByteCount(argument) else { return nil }
        self.size = size
    }
}

/// The quality of a lossy format on the command line: `0.8`, `80` or `80%`. Numbers up to 1 are fractions.
struct QualityArgument: ExpressibleByArgument {
    /// From 0 to 1.
    let value: Double

    init(_ value: Double) { self.value = value }

    init?(argument: String) {
        let isPercent = argument.last == "%"
        guard let number = Double(isPercent ? argument.dropLast() : argument[...]), (0...100).contains(number) else {
            return nil
        }
        value = isPercent || number > 1 ? number / 100 : number
    }

    var defaultValueDescription: String { value.formatted("%g") }
}

/// A header field: `Name: value`.
struct HeaderArgument: ExpressibleByArgument {
    let name: String
    let value: String

    init?(argument: String) {
        guard let colon = argument.firstIndex(of: ":") else { return nil }
        name = String(argument[..<colon])
        value = String(argument[argument.index(after: colon)...].withoutSpacesAround)
        guard HTTPSyntax.isToken(name), HTTPSyntax.isFieldValue(value) else { return nil }
    }
}

extension [HeaderArgument] {
    /// Fields that the loader always writes itself.
    private static var ownFields: Set<String> {
        HTTPSyntax.transportFields.union(HTTPSyntax.conditionFields).union(["accept-encoding"])
    }

    /// - Throws: `ValidationError` for fields that the loader would omit or replace.
    func validateNames() throws {
        guard let field = first(where: { Self.ownFields.contains($0.name.lowercased()) }) else { return }
        throw ValidationError("--header cannot set \(field.name): vitrine writes this field itself")
    }
}

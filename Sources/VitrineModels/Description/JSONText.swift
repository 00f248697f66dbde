/// Writes JSON that people read: two spaces a level, in the order given.
struct JSONText {
    private(set) var text = ""
    private var indentation = ""
    private var isEmpty: [Bool] = []

    /// Begins an object or array.
    mutating func open(_ bracket: String) {
        text += bracket
        indentation += "  "
        isEmpty.append(true)
    }

    /// Ends the innermost object or array.
    mutating func close(_ bracket: String) {
        indentation.removeLast(2)
        if isEmpty.popLast() == false { text += "\n" + indentation }
        text += bracket
    }

    /// Begins an element of an array, which follows.
    mutating func element() {
        text += isEmpty.last == true ? "\n" : ",\n"
        text += indentation
        if !isEmpty.isEmpty { isEmpty[isEmpty.count - 1] = false }
    }

    /// Begins a member of an object, whose value follows.
    mutating func member(_ name: String) {
        element()
        string(name)
        text += " : "
    }

    mutating func literal(_ word: String) { text += word }

    mutating func string(_ string: String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}

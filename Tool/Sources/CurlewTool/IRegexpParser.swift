// SPDX-License-Identifier: Apache-2.0

/// Reads the text of an ``IRegexp`` (RFC 9485, section 4).
struct IRegexpParser {
    indirect enum Node {
        case take(ScalarClass)
        case sequence([Node])
        case choice([Node])
        case repeated(Node, Int, Int?)
    }

    private static let deepest = 64

    private var rest: Substring.UnicodeScalarView
    private var depth = 0

    init(_ text: String) { rest = text.unicodeScalars[...] }

    /// The expression; `nil` if the text is none.
    mutating func whole() -> Node? {
        guard let node = choice(), rest.isEmpty else { return nil }
        return node
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard rest.first == scalar else { return false }
        rest = rest.dropFirst()
        return true
    }

    private mutating func choice() -> Node? {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { return nil }
        var branches: [Node] = []
        repeat {
            var pieces: [Node] = []
            while let next = rest.first, next != "|", next != ")" {
                guard let piece = piece() else { return nil }
                pieces.append(piece)
            }
            branches.append(.sequence(pieces))
        } while take("|")
        return branches.count == 1 ? branches[0] : .choice(branches)
    }

    private mutating func piece() -> Node? {
        guard let atom = atom() else { return nil }
        if take("*") { return .repeated(atom, 0, nil) }
        if take("+") { return .repeated(atom, 1, nil) }
        if take("?") { return .repeated(atom, 0, 1) }
        guard take("{") else { return atom }
        guard let minimum = number() else { return nil }
        var maximum: Int? = minimum
        if take(",") {
            maximum = nil
            if rest.first != "}" {
                guard let number = number(), number >= minimum else { return nil }
                maximum = number
            }
        }
        return take("}") ? .repeated(atom, minimum, maximum) : nil
    }

    private mutating func number() -> Int? {
        let digits = rest.prefix { ("0"..."9").contains($0) }
        guard let number = Int(String(Substring(digits))) else { return nil }
        rest = rest[digits.endIndex...]
        return number
    }

    private mutating func atom() -> Node? {
        guard let scalar = rest.first else { return nil }
        switch scalar {
        case "(":
            rest = rest.dropFirst()
            guard let choice = choice(), take(")") else { return nil }
            return choice
        case ".":
            rest = rest.dropFirst()
            return .take(ScalarClass(ranges: ["\n"..."\n", "\r"..."\r"], isNegated: true))
        case "\\":
            if let category = category() { return .take(ScalarClass(categories: [category])) }
            return escape().map { .take(ScalarClass(ranges: [$0...$0])) }
        case "[": return bracketed().map { .take($0) }
        case "]", "{", "}", "*", "+", "?": return nil
        default:
            rest = rest.dropFirst()
            return .take(ScalarClass(ranges: [scalar...scalar]))
        }
    }

    /// Reads the scalar that a backslash stands before; leaves the rest as it is if there is none.
    private mutating func escape() -> Unicode.Scalar? {
        guard rest.first == "\\", let scalar = rest.dropFirst().first else { return nil }
        let known: Unicode.Scalar
        switch scalar {
        case "n": known = "\n"
        case "r": known = "\r"
        case "t": known = "\t"
        case _ where "()*+-.?[\\]^{|}".unicodeScalars.contains(scalar): known = scalar
        default: return nil
        }
        rest = rest.dropFirst(2)
        return known
    }

    /// Reads `\p{L}` or `\P{L}`; leaves the rest as it is if there is none.
    private mutating func category() -> (name: String, isNegated: Bool)? {
        let text = rest.prefix(6)
        guard text.starts(with: "\\p{".unicodeScalars) || text.starts(with: "\\P{".unicodeScalars) else { return nil }
        let name = text.dropFirst(3).prefix { $0 != "}" }
        guard text.dropFirst(3 + name.count).first == "}" else { return nil }
        let known = String(Substring(name))
        let letters = ["L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "Z": "lps", "S": "ckmo", "C": "cfno"]
        guard let first = name.first, let second = letters[String(first)],
            name.count == 1 || name.count == 2 && name.dropFirst().allSatisfy(second.unicodeScalars.contains)
        else { return nil }
        rest = rest.dropFirst(4 + name.count)
        return (known, text.dropFirst().first == "P")
    }

    private mutating func bracketed() -> ScalarClass? {
        guard take("[") else { return nil }
        var scalars = ScalarClass()
        scalars.isNegated = take("^")
        var isFirst = true
        while !take("]") {
            defer { isFirst = false }
            // A hyphen stands for itself at the beginning and at the end.
            if rest.first == "-" {
                guard isFirst || rest.dropFirst().first == "]" else { return nil }
                rest = rest.dropFirst()
                scalars.ranges.append("-"..."-")
            } else if let category = category() {
                scalars.categories.append(category)
            } else {
                guard let first = bracketedScalar() else { return nil }
                guard rest.first == "-", rest.dropFirst().first != "]" else {
                    scalars.ranges.append(first...first)
                    continue
                }
                rest = rest.dropFirst()
                guard let last = bracketedScalar(), first <= last else { return nil }
                scalars.ranges.append(first...last)
            }
        }
        return isFirst ? nil : scalars
    }

    private mutating func bracketedScalar() -> Unicode.Scalar? {
        guard let scalar = rest.first, !"-[]".unicodeScalars.contains(scalar) else { return nil }
        guard scalar != "\\" else { return escape() }
        rest = rest.dropFirst()
        return scalar
    }
}

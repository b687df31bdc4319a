// SPDX-License-Identifier: Apache-2.0

/// Reads the text of a ``JSONPath``.
struct JSONPathParser {
    private static let deepest = 64
    private let text: String
    private var rest: Substring.UnicodeScalarView
    private var depth = 0

    init(_ text: String) {
        self.text = text
        rest = text.unicodeScalars[...]
    }

    mutating func whole() throws(UsageError) -> JSONPath.Query {
        let query = try self.query()
        skipSpace()
        guard rest.isEmpty else { throw error("the end was expected") }
        return query
    }

    private func error(_ reason: String) -> UsageError {
        let place = text.unicodeScalars.distance(from: text.startIndex, to: rest.startIndex)
        return UsageError("--filter \(text.quoted), character \(place + 1): \(reason)")
    }

    private mutating func skipSpace() { rest = rest.drop { " \t\r\n".unicodeScalars.contains($0) } }

    private mutating func take(_ word: String) -> Bool {
        guard rest.starts(with: word.unicodeScalars) else { return false }
        rest = rest.dropFirst(word.unicodeScalars.count)
        return true
    }

    // MARK: Queries

    private mutating func query() throws(UsageError) -> JSONPath.Query {
        let isAbsolute = rest.first == "$"
        guard isAbsolute || rest.first == "@" else { throw error("$ or @ was expected") }
        rest = rest.dropFirst()
        var segments: [JSONPath.Segment] = []
        while let segment = try segment() { segments.append(segment) }
        return JSONPath.Query(isAbsolute: isAbsolute, segments: segments)
    }

    private mutating func segment() throws(UsageError) -> JSONPath.Segment? {
        let before = rest
        skipSpace()
        if take("..") {
            if rest.first == "[" { return JSONPath.Segment(selectors: try brackets(), isDescendant: true) }
            return JSONPath.Segment(selectors: [try shorthand()], isDescendant: true)
        }
        if take(".") { return JSONPath.Segment(selectors: [try shorthand()], isDescendant: false) }
        if rest.first == "[" { return JSONPath.Segment(selectors: try brackets(), isDescendant: false) }
        rest = before
        return nil
    }

    private mutating func shorthand() throws(UsageError) -> JSONPath.Selector {
        if take("*") { return .wildcard }
        let name = rest.prefix { $0 == "_" || $0.value >= 0x80 || $0.properties.isAlphabetic || ("0"..."9").contains($0) }
        guard let first = name.first, !("0"..."9").contains(first) else { throw error("a name or * was expected") }
        rest = rest[name.endIndex...]
        return .name(String(Substring(name)))
    }

    private mutating func brackets() throws(UsageError) -> [JSONPath.Selector] {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw error("more than \(Self.deepest) brackets within others") }
        rest = rest.dropFirst()
        var selectors: [JSONPath.Selector] = []
        repeat {
            skipSpace()
            selectors.append(try selector())
            skipSpace()
        } while take(",")
        guard take("]") else { throw error("] was expected") }
        return selectors
    }

    private mutating func selector() throws(UsageError) -> JSONPath.Selector {
        if take("*") { return .wildcard }
        if take("?") { return .filter(try condition()) }
        if let quote = rest.first, quote == "'" || quote == "\"" { return .name(try quoted()) }
        let start = try integer()
        skipSpace()
        guard take(":") else {
            guard let start else { throw error("a name in quotes, a number, *, : or ? was expected") }
            return .index(start)
        }
        skipSpace()
        let end = try integer()
        skipSpace()
        var step: Int?
        if take(":") {
            skipSpace()
            step = try integer()
        }
        return .slice(start, end, step ?? 1)
    }

    private mutating func integer() throws(UsageError) -> Int? {
        let digits = rest.prefix { $0 == "-" || ("0"..."9").contains($0) }
        guard !digits.isEmpty else { return nil }
        guard let number = Int(String(Substring(digits))), number.magnitude < 1 << 53 else {
            throw error("the number is no whole number below 2^53")
        }
        rest = rest[digits.endIndex...]
        return number
    }

    private mutating func quoted() throws(UsageError) -> String {
        guard let quote = rest.popFirst() else { throw error("a quote was expected") }
        var result = String.UnicodeScalarView()
        while let scalar = rest.popFirst() {
            if scalar == quote { return String(result) }
            guard scalar == "\\", let next = rest.popFirst() else {
                result.append(scalar)
                continue
            }
            switch next {
            case "n": result.append("\n")
            case "t": result.append("\t")
            case "r": result.append("\r")
            case "b": result.append("\u{8}")
            case "f": result.append("\u{C}")
            case "u":
                let digits = rest.prefix(4)
                guard digits.count == 4, let value = UInt32(String(Substring(digits)), radix: 16), let scalar = Unicode.Scalar(value) else {
                    throw error("four hexadecimal digits of a character were expected")
                }
                result.append(scalar)
                rest = rest.dropFirst(4)
            case "'", "\"", "\\", "/": result.append(next)
            default: throw error("\\\(next) is no escape")
            }
        }
        throw error("the quote has no end")
    }

    // MARK: Conditions

    private mutating func condition() throws(UsageError) -> JSONPath.Condition {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw error("more than \(Self.deepest) parentheses within others") }
        var alternatives: [JSONPath.Condition] = []
        repeat {
            var parts: [JSONPath.Condition] = []
            repeat {
                parts.append(try term())
                skipSpace()
            } while take("&&")
            alternatives.append(parts.count == 1 ? parts[0] : .all(parts))
        } while take("||")
        return alternatives.count == 1 ? alternatives[0] : .any(alternatives)
    }

    private mutating func term() throws(UsageError) -> JSONPath.Condition {
        skipSpace()
        if take("!") {
            skipSpace()
            if take("(") { return .not(try parenthesized()) }
            if let condition = try matching() { return .not(condition) }
            return .not(.exists(try query()))
        }
        if take("(") { return try parenthesized() }
        if let condition = try matching() { return condition }
        let left = try operand()
        skipSpace()
        guard let sign = ["==", "!=", "<=", ">=", "<", ">"].first(where: { take($0) }) else {
            guard case .query(let query) = left else { throw error("==, !=, <, <=, > or >= was expected") }
            return .exists(query)
        }
        skipSpace()
        return .compares(left, sign, try operand())
    }

    /// Reads `match(text, pattern)` or `search(text, pattern)`; `nil` if there is neither.
    private mutating func matching() throws(UsageError) -> JSONPath.Condition? {
        let isWhole = take("match(")
        guard isWhole || take("search(") else { return nil }
        skipSpace()
        let text = try operand()
        skipSpace()
        guard take(",") else { throw error(", was expected, and a pattern") }
        skipSpace()
        let pattern = try operand()
        skipSpace()
        guard take(")") else { throw error(") was expected") }
        guard case .literal(let value) = pattern else { return .matches(text, .found(pattern), isWhole: isWhole) }
        return .matches(text, .fixed(value.string.flatMap { IRegexp($0) }), isWhole: isWhole)
    }

    private mutating func parenthesized() throws(UsageError) -> JSONPath.Condition {
        let condition = try self.condition()
        skipSpace()
        guard take(")") else { throw error(") was expected") }
        return condition
    }

    private mutating func operand() throws(UsageError) -> JSONPath.Operand {
        if let first = rest.first, first == "$" || first == "@" { return .query(try query()) }
        if let first = rest.first, first == "'" || first == "\"" { return .literal(.text(NestedJSON.quoted(try quoted()))) }
        for name in ["length(", "count(", "value("] where take(name) {
            skipSpace()
            let argument = try operand()
            skipSpace()
            guard take(")") else { throw error(") was expected") }
            if name == "length(" { return .length(argument) }
            guard case .query(let query) = argument else { throw error("\(name.dropLast()) needs a query") }
            return name == "count(" ? .count(query) : .query(query)
        }
        let word = rest.prefix { $0.properties.isAlphabetic || ("0"..."9").contains($0) || "+-.".unicodeScalars.contains($0) }
        let value = String(Substring(word))
        guard !value.isEmpty, JSONReindenter.isValid(value.utf8) else {
            throw error("a query, a string, a number, true, false or null was expected")
        }
        rest = rest[word.endIndex...]
        return .literal(.text(value))
    }
}

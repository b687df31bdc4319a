// SPDX-License-Identifier: Apache-2.0

extension StructuredFields {
    /// A field that does not parse: what is wrong, and where.
    public struct ParsingError: LocalizedError, Sendable, Hashable, LineConvertible {
        /// What is wrong with a field. Later versions may add cases, so a `switch` needs a `default`.
        public enum Reason: String, Sendable, Hashable {
            /// No item begins here; a list in an inner list is none either.
            case noItem = "an item was expected"
            /// Keys consist of lower-case letters, digits, `_`, `-`, `.` and `*`, and begin with a letter or `*`.
            case noKey = "a key was expected"
            /// Something other than a comma follows a member.
            case noComma = "a comma was expected after a member"
            /// No member follows a comma.
            case trailingComma = "no member follows the comma"
            /// Something follows an item.
            case textAfterItem = "nothing may follow the item"
            /// An inner list has no closing parenthesis.
            case openInnerList = "the inner list is not closed"
            /// Something other than a space follows an item of an inner list.
            case noSpace = "a space was expected between the items of an inner list"
            /// A number has no digits, or none after its point.
            case noDigit = "a digit was expected"
            /// An integer has more than 15 digits, a decimal more than 12 before its point or 3 after it.
            case tooManyDigits = "the number has too many digits"
            /// A string has no closing quotation mark.
            case openString = "the string is not closed"
            /// A string has a character that is not allowed in it.
            case invalidCharacter = "the character is not allowed in a string"
            /// A backslash precedes something other than a quotation mark or a backslash, or a percent sign no two lower-case digits.
            case invalidEscape = "the escape is invalid"
            /// The bytes of a display string are not UTF-8.
            case invalidUTF8 = "the display string is not UTF-8"
            /// A byte sequence is not Base64 between colons.
            case invalidBytes = "the byte sequence is not Base64 between colons"
            /// A boolean is neither `?0` nor `?1`.
            case invalidBoolean = "a boolean is ?0 or ?1"
            /// A date is no integer.
            case invalidDate = "a date is an integer"
        }

        /// What is wrong.
        public let reason: Reason
        /// Where it is, in bytes of UTF-8 from the beginning of the text.
        public let offset: Int

        /// What is wrong, and where.
        package var line: String { "\(reason.rawValue), at byte \(offset)" }

        /// The description.
        public var errorDescription: String? { description }
    }

    /// Parses a field that is an item (RFC 9651, section 4.2.3).
    public static func item(from text: String) throws(ParsingError) -> Item {
        var parser = StructuredFieldParser(text)
        let item = try parser.item()
        try parser.requireEnd()
        return item
    }

    /// Parses a field that is a list (RFC 9651, section 4.2.1). An empty text is a list without members.
    public static func list(from text: String) throws(ParsingError) -> [Member] {
        var parser = StructuredFieldParser(text)
        var list: [Member] = []
        while try parser.hasMember(isFirst: list.isEmpty) { list.append(try parser.member()) }
        return list
    }

    /// Parses a field that is a dictionary (RFC 9651, section 4.2.2). An empty text is a dictionary without members.
    ///
    /// Of several members with the same key, the last one counts.
    public static func dictionary(from text: String) throws(ParsingError) -> Dictionary {
        var parser = StructuredFieldParser(text)
        var dictionary: Dictionary = [:]
        var places: [String: Int] = [:]
        while try parser.hasMember(isFirst: dictionary.isEmpty) {
            let key = try parser.key()
            let member = try parser.dictionaryMember()
            dictionary.set(member, for: key, places: &places)
        }
        return dictionary
    }
}

/// The algorithms of RFC 9651, section 4.2, on a cursor. None is recursive.
private struct StructuredFieldParser {
    typealias Failure = StructuredFields.ParsingError

    private let text: String
    private var input: FieldParser

    init(_ text: String) {
        self.text = text
        input = FieldParser(text)
        skipSpaces()
    }

    private mutating func skipSpaces() { input.take { $0 == UInt8(ascii: " ") } }

    private func failure(_ reason: Failure.Reason) -> Failure {
        Failure(reason: reason, offset: text.utf8.distance(from: text.startIndex, to: input.rest.startIndex))
    }

    // MARK: Members

    mutating func requireEnd() throws(Failure) {
        skipSpaces()
        guard input.isAtEnd else { throw failure(.textAfterItem) }
    }

    /// Whether a member follows; consumes the comma before it.
    mutating func hasMember(isFirst: Bool) throws(Failure) -> Bool {
        guard !isFirst else { return !input.isAtEnd }
        input.skipBlanks()
        guard !input.isAtEnd else { return false }
        guard input.skip(",") else { throw failure(.noComma) }
        input.skipBlanks()
        guard !input.isAtEnd else { throw failure(.trailingComma) }
        return true
    }

    mutating func member() throws(Failure) -> StructuredFields.Member {
        try input.next == UInt8(ascii: "(") ? .innerList(innerList()) : .item(item())
    }

    mutating func dictionaryMember() throws(Failure) -> StructuredFields.Member {
        try input.skip("=") ? member() : .item(.init(.boolean(true), parameters: parameters()))
    }

    private mutating func innerList() throws(Failure) -> StructuredFields.InnerList {
        _ = input.skip("(")
        var items: [StructuredFields.Item] = []
        while !input.isAtEnd {
            skipSpaces()
            if input.skip(")") { return .init(items, parameters: try parameters()) }
            guard !input.isAtEnd else { break }
            items.append(try item())
            guard input.isAtEnd || input.next == UInt8(ascii: " ") || input.next == UInt8(ascii: ")") else { throw failure(.noSpace) }
        }
        throw failure(.openInnerList)
    }

    mutating func item() throws(Failure) -> StructuredFields.Item {
        let value = try bareItem()
        return .init(value, parameters: try parameters())
    }

    mutating func key() throws(Failure) -> String {
        guard let first = input.next, first.isLowerCaseLetter || first == UInt8(ascii: "*") else { throw failure(.noKey) }
        return String(input.take(while: \.isKeyCharacter))
    }

    private mutating func parameters() throws(Failure) -> StructuredFields.Parameters {
        var parameters: StructuredFields.Parameters = [:]
        var places: [String: Int] = [:]
        while input.skip(";") {
            skipSpaces()
            let key = try key()
            let value = try input.skip("=") ? bareItem() : .boolean(true)
            parameters.set(value, for: key, places: &places)
        }
        return parameters
    }

    // MARK: Bare items

    private mutating func bareItem() throws(Failure) -> StructuredFields.BareItem {
        guard let first = input.next else { throw failure(.noItem) }
        switch first {
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "*"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"):
            return .token(String(input.take(while: \.isStructuredTokenCharacter)))
        case UInt8(ascii: ":"): return .bytes(try bytes())
        case UInt8(ascii: "?"): return .boolean(try boolean())
        case UInt8(ascii: "@"): return .date(try date())
        case UInt8(ascii: "%"): return .displayString(try displayString())
        default: throw failure(.noItem)
        }
    }

    private mutating func number() throws(Failure) -> StructuredFields.BareItem {
        let sign = input.skip("-") ? -1 : 1
        let whole = input.take(while: \.isASCIIDigit)
        guard !whole.isEmpty else { throw failure(.noDigit) }
        guard input.next == UInt8(ascii: ".") else {
            guard whole.utf8.count <= 15, let number = Int(whole) else { throw failure(.tooManyDigits) }
            return .integer(sign * number)
        }
        guard whole.utf8.count <= 12 else { throw failure(.tooManyDigits) }
        _ = input.skip(".")
        let fraction = input.take(while: \.isASCIIDigit)
        guard !fraction.isEmpty else { throw failure(.noDigit) }
        let digits = "\(whole)\(fraction)" + String(repeating: "0", count: max(3 - fraction.utf8.count, 0))
        guard fraction.utf8.count <= 3, let number = Int(digits).flatMap({ StructuredFields.Decimal(thousandths: sign * $0) }) else {
            throw failure(.tooManyDigits)
        }
        return .decimal(number)
    }

    private mutating func string() throws(Failure) -> String {
        _ = input.skip("\"")
        var content = ""
        while true {
            content += input.take { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
            if input.skip("\"") { return content }
            guard !input.isAtEnd else { throw failure(.openString) }
            guard input.skip("\\") else { throw failure(.invalidCharacter) }
            if input.skip("\"") {
                content += "\""
            } else if input.skip("\\") {
                content += "\\"
            } else {
                throw failure(.invalidEscape)
            }
        }
    }

    private mutating func bytes() throws(Failure) -> Data {
        let start = input
        _ = input.skip(":")
        var content = String(input.take { $0 != UInt8(ascii: ":") })
        // Missing padding is accepted (section 4.2.7).
        if !content.hasByteSuffix("=") { content += String(repeating: "=", count: (4 - content.utf8.count % 4) % 4) }
        guard input.skip(":"), let data = Data(base64Encoded: content) else {
            input = start
            throw failure(.invalidBytes)
        }
        return data
    }

    private mutating func boolean() throws(Failure) -> Bool {
        _ = input.skip("?")
        if input.skip("1") { return true }
        guard input.skip("0") else { throw failure(.invalidBoolean) }
        return false
    }

    private mutating func date() throws(Failure) -> Int {
        _ = input.skip("@")
        let start = input
        if case .integer(let seconds) = try number() { return seconds }
        input = start
        throw failure(.invalidDate)
    }

    private mutating func displayString() throws(Failure) -> String {
        let start = input
        _ = input.skip("%")
        guard input.skip("\"") else { throw failure(.noItem) }
        var bytes: [UInt8] = []
        while true {
            bytes += input.take { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "%") }.utf8
            if input.skip("\"") { break }
            guard !input.isAtEnd else { throw failure(.openString) }
            let escape = input
            guard input.skip("%") else { throw failure(.invalidCharacter) }
            guard let high = input.takeByte()?.lowerHexValue, let low = input.takeByte()?.lowerHexValue else {
                input = escape
                throw failure(.invalidEscape)
            }
            bytes.append(high << 4 | low)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            input = start
            throw failure(.invalidUTF8)
        }
        return text
    }
}

extension UInt8 {
    fileprivate var isLowerCaseLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }

    /// Whether the byte may be in a key (RFC 9651, section 3.1.2), not only at its beginning.
    var isKeyCharacter: Bool { isLowerCaseLetter || isASCIIDigit || "_-.*".utf8.contains(self) }

    /// Whether the byte may be in a token (RFC 9651, section 3.3.4), not only at its beginning.
    var isStructuredTokenCharacter: Bool { HTTPToken.isTokenCharacter(self) || self == UInt8(ascii: ":") || self == UInt8(ascii: "/") }

    fileprivate var lowerHexValue: UInt8? { (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(self) ? nil : hexValue }
}

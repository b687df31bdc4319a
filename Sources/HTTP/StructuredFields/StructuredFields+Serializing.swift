// SPDX-License-Identifier: Apache-2.0

extension StructuredFields {
    /// A value that no field can have. Later versions may add cases, so a `switch` needs a `default`.
    public enum SerializationError: LocalizedError, Sendable, Hashable, LineConvertible {
        /// A key that does not consist of lower-case letters, digits, `_`, `-`, `.` and `*`, or begins with another than a letter or `*`.
        case invalidKey(String)
        /// A string with other characters than those of printable ASCII: ``BareItem/displayString(_:)`` may have them.
        case invalidString(String)
        /// A token with characters that need quotes.
        case invalidToken(String)
        /// An integer or a date of more than 15 digits.
        case tooManyDigits(Int)

        /// What is wrong with which value.
        package var line: String {
            switch self {
            case .invalidKey(let key): "\(key.debugDescription) is no key"
            case .invalidString(let text): "\(text.debugDescription) is not printable ASCII, as a string has to be"
            case .invalidToken(let text): "\(text.debugDescription) is no token"
            case .tooManyDigits(let number): "\(number) has more than 15 digits"
            }
        }

        /// The description.
        public var errorDescription: String? { description }
    }

    /// Serializes a field that is an item (RFC 9651, section 4.1.3).
    public static func text(of item: Item) throws(SerializationError) -> String {
        try text(of: item.value) + text(of: item.parameters)
    }

    /// Serializes a field that is a list (RFC 9651, section 4.1.1). The field of an empty list, whose text is empty, must not be sent.
    public static func text(of list: [Member]) throws(SerializationError) -> String {
        var members: [String] = []
        for member in list { members.append(try text(of: member)) }
        return members.joined(separator: ", ")
    }

    /// Serializes a field that is a dictionary (RFC 9651, section 4.1.2). The field of an empty one, whose text is empty, must not be sent.
    public static func text(of dictionary: Dictionary) throws(SerializationError) -> String {
        var members: [String] = []
        for member in dictionary {
            if case .item(let item) = member.value, item.value == .boolean(true) {
                members.append(try text(ofKey: member.key) + text(of: item.parameters))
            } else {
                members.append(try text(ofKey: member.key) + "=" + text(of: member.value))
            }
        }
        return members.joined(separator: ", ")
    }

    private static func text(of member: Member) throws(SerializationError) -> String {
        switch member {
        case .item(let item): return try text(of: item)
        case .innerList(let list):
            var items: [String] = []
            for item in list.items { items.append(try text(of: item)) }
            return try "(" + items.joined(separator: " ") + ")" + text(of: list.parameters)
        }
    }

    private static func text(of parameters: Parameters) throws(SerializationError) -> String {
        var text = ""
        for parameter in parameters {
            text += try ";" + self.text(ofKey: parameter.key)
            if parameter.value != .boolean(true) { text += try "=" + self.text(of: parameter.value) }
        }
        return text
    }

    private static func text(ofKey key: String) throws(SerializationError) -> String {
        let isKey = key.utf8.allSatisfy(\.isKeyCharacter) && key.utf8.first.map { !$0.isASCIIDigit && !"_-.".utf8.contains($0) } ?? false
        guard isKey else { throw .invalidKey(key) }
        return key
    }

    private static func text(of value: BareItem) throws(SerializationError) -> String {
        switch value {
        case .integer(let number): return try digits(number)
        case .decimal(let number): return number.description
        case .string(let text):
            guard text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else { throw .invalidString(text) }
            return text.quotedString
        case .token(let text):
            guard isToken(text) else { throw .invalidToken(text) }
            return text
        case .bytes(let data): return ":" + data.base64EncodedString() + ":"
        case .boolean(let flag): return flag ? "?1" : "?0"
        case .date(let seconds): return try "@" + digits(seconds)
        case .displayString(let text): return "%\"" + percentEncoded(text) + "\""
        }
    }

    private static func digits(_ number: Int) throws(SerializationError) -> String {
        guard number.magnitude < 1_000_000_000_000_000 else { throw .tooManyDigits(number) }
        return String(number)
    }

    private static func percentEncoded(_ text: String) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "%"), byte != UInt8(ascii: "\"") {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether a text is a token (RFC 9651, section 3.3.4).
    package static func isToken(_ text: String) -> Bool {
        guard let first = text.utf8.first, first == UInt8(ascii: "*") || first & 0xDF &- 0x41 < 26 else { return false }
        return text.utf8.allSatisfy(\.isStructuredTokenCharacter)
    }
}

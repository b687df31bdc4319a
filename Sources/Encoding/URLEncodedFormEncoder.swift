// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Writes `Encodable` values as `key=value` pairs joined by `&`, percent-encoded as ``URLEncoding`` does it.
///
/// The top level has to have keys: a structure, a class, a dictionary. Numbers are written in decimal, whole ones without a fraction; a
/// `Decimal` and a `URL` as their text. Equal values give equal texts as long as ``alphabetizeKeyValuePairs`` is on.
public struct URLEncodedFormEncoder: Sendable {
    /// How the key of an array's element is written.
    public enum ArrayEncoding: Sendable {
        /// `key[]`.
        case brackets
        /// As the array's own: `key`.
        case noBrackets
        /// `key[0]`, `key[1]` and so on.
        case indexInBrackets
        /// As the closure has it, of the array's key and the element's index; it is percent-encoded afterwards.
        case custom(@Sendable (_ key: String, _ index: Int) -> String)
    }

    /// How a Boolean is written.
    public enum BoolEncoding: Sendable, Hashable {
        /// `1` and `0`.
        case numeric
        /// `true` and `false`.
        case literal
    }

    /// How `Data` is written.
    public enum DataEncoding: Sendable {
        /// As `Data` encodes itself: an array of numbers.
        case deferredToData
        /// In Base64 (RFC 4648, section 4).
        case base64
        /// As the closure has it.
        case custom(@Sendable (Data) throws -> String)
    }

    /// How a `Date` is written.
    public enum DateEncoding: Sendable {
        /// As `Date` encodes itself: seconds since the first instant of 2001, UTC.
        case deferredToDate
        /// Seconds since the first instant of 1970, UTC.
        case secondsSince1970
        /// Milliseconds since the first instant of 1970, UTC.
        case millisecondsSince1970
        /// In UTC, as `2026-01-31T12:00:00Z` (ISO 8601, RFC 3339).
        case iso8601
        /// As the formatter has it, which is not to be changed meanwhile.
        case formatted(DateFormatter)
        /// As the closure has it.
        case custom(@Sendable (Date) throws -> String)
    }

    /// How a key is written, at every depth, also one of a dictionary.
    public enum KeyEncoding: Sendable {
        /// As it is.
        case useDefaultKeys
        /// `oneTwoThree` becomes `one_two_three`.
        case convertToSnakeCase
        /// `oneTwoThree` becomes `one-two-three`.
        case convertToKebabCase
        /// The first letter as a capital.
        case capitalized
        /// In capitals.
        case uppercased
        /// In small letters.
        case lowercased
        /// As the closure has it.
        case custom(@Sendable (String) -> String)
    }

    /// How a key inside another one is written.
    public struct KeyPathEncoding: Sendable {
        /// `parent[child]`.
        public static let brackets = KeyPathEncoding { "[\($0)]" }
        /// `parent.child`.
        public static let dots = KeyPathEncoding { ".\($0)" }

        let encode: @Sendable (String) -> String

        /// Makes an encoding that writes a child's key as the closure has it, behind its parent's.
        @preconcurrency
        public init(encoding: @escaping @Sendable (_ subkey: String) -> String) {
            encode = encoding
        }
    }

    /// What becomes of `nil`.
    public struct NilEncoding: Sendable {
        /// Nothing: neither key nor value.
        public static let dropKey = NilEncoding { nil }
        /// The key without a value, `key=`.
        public static let dropValue = NilEncoding { "" }
        /// `key=null`.
        public static let null = NilEncoding { "null" }

        let encode: @Sendable () -> String?

        /// Makes an encoding that writes what the closure gives for the value; `nil` for nothing at all.
        @preconcurrency
        public init(encoding: @escaping @Sendable () -> String?) {
            encode = encoding
        }
    }

    /// How a space is written.
    public enum SpaceEncoding: Sendable, Hashable {
        /// `%20`.
        case percentEscaped
        /// `+`, as HTML forms do it.
        case plusReplaced
    }

    /// Whether pairs come sorted by their keys, at every depth; else in the order in which the value encodes itself, which is none for a
    /// dictionary.
    public let alphabetizeKeyValuePairs: Bool
    /// How the key of an array's element is written.
    public let arrayEncoding: ArrayEncoding
    /// How a Boolean is written.
    public let boolEncoding: BoolEncoding
    /// How `Data` is written.
    public let dataEncoding: DataEncoding
    /// How a `Date` is written.
    public let dateEncoding: DateEncoding
    /// How a key is written.
    public let keyEncoding: KeyEncoding
    /// How a key inside another one is written.
    public let keyPathEncoding: KeyPathEncoding
    /// What becomes of `nil`.
    public let nilEncoding: NilEncoding
    /// How a space is written.
    public let spaceEncoding: SpaceEncoding

    /// Makes an encoder.
    ///
    /// - Parameters:
    ///   - alphabetizeKeyValuePairs: whether pairs come sorted by their keys.
    ///   - arrayEncoding: `key[]` by default.
    ///   - boolEncoding: `1` and `0` by default.
    ///   - dataEncoding: Base64 by default.
    ///   - dateEncoding: seconds since 2001 by default, as `Date` encodes itself.
    ///   - keyEncoding: keys as they are by default.
    ///   - keyPathEncoding: `parent[child]` by default.
    ///   - nilEncoding: nothing by default.
    ///   - spaceEncoding: `%20` by default.
    public init(
        alphabetizeKeyValuePairs: Bool = true, arrayEncoding: ArrayEncoding = .brackets, boolEncoding: BoolEncoding = .numeric,
        dataEncoding: DataEncoding = .base64, dateEncoding: DateEncoding = .deferredToDate, keyEncoding: KeyEncoding = .useDefaultKeys,
        keyPathEncoding: KeyPathEncoding = .brackets, nilEncoding: NilEncoding = .dropKey, spaceEncoding: SpaceEncoding = .percentEscaped
    ) {
        self.alphabetizeKeyValuePairs = alphabetizeKeyValuePairs
        self.arrayEncoding = arrayEncoding
        self.boolEncoding = boolEncoding
        self.dataEncoding = dataEncoding
        self.dateEncoding = dateEncoding
        self.keyEncoding = keyEncoding
        self.keyPathEncoding = keyPathEncoding
        self.nilEncoding = nilEncoding
        self.spaceEncoding = spaceEncoding
    }

    /// The pairs of a value, percent-encoded.
    ///
    /// - Throws: `EncodingError.invalidValue` for a value without keys at its top level, or nested more than 512 levels deep; what the
    ///   value or a closure throws.
    public func encode(_ value: some Encodable) throws -> String {
        let encoder = FormEncoder(self)
        let node = try encoder.node(of: value)
        guard case .keyed = node.content else {
            throw EncodingError.invalidValue(
                value, EncodingError.Context(codingPath: [], debugDescription: "A form needs keys at its top level."))
        }
        var pairs: [String] = []
        try write(node, key: "", isTopLevel: true, into: &pairs)
        return pairs.joined(separator: "&")
    }

    /// The pairs of a value, percent-encoded, as bytes. As ``encode(_:)-(Encodable)``.
    public func encode(_ value: some Encodable) throws -> Data {
        let text: String = try encode(value)
        return Data(text.utf8)
    }

    // MARK: Writing

    private func write(_ node: FormNode, key: String, isTopLevel: Bool = false, into pairs: inout [String]) throws {
        switch node.content {
        case .nothing: break
        case .null: if let text = nilEncoding.encode() { pairs.append("\(escape(key))=\(escape(text))") }
        case .value(let text): pairs.append("\(escape(key))=\(escape(text))")
        case .keyed(let members):
            var named = members.map { (key: keyEncoding.encode($0.key), node: $0.node) }
            if alphabetizeKeyValuePairs { named.sort { $0.key < $1.key } }
            for (name, child) in named { try write(child, key: isTopLevel ? name : key + keyPathEncoding.encode(name), into: &pairs) }
        case .unkeyed(let elements):
            for (index, element) in elements.enumerated() { try write(element, key: arrayEncoding.encode(key, index), into: &pairs) }
        }
    }

    private func escape(_ text: String) -> String {
        let escaped = PercentEncoding.escape(text)
        // No other "%20" is in there: a percent sign of the text's own has become "%25".
        return spaceEncoding == .plusReplaced ? escaped.replacing("%20", with: "+") : escaped
    }
}

extension URLEncodedFormEncoder.ArrayEncoding {
    fileprivate func encode(_ key: String, _ index: Int) -> String {
        switch self {
        case .brackets: "\(key)[]"
        case .noBrackets: key
        case .indexInBrackets: "\(key)[\(index)]"
        case .custom(let encoding): encoding(key, index)
        }
    }
}

extension URLEncodedFormEncoder.KeyEncoding {
    fileprivate func encode(_ key: String) -> String {
        switch self {
        case .useDefaultKeys: key
        case .convertToSnakeCase: Self.separated(key, by: "_")
        case .convertToKebabCase: Self.separated(key, by: "-")
        case .capitalized: key.prefix(1).uppercased() + key.dropFirst()
        case .uppercased: key.uppercased()
        case .lowercased: key.lowercased()
        case .custom(let encoding): encoding(key)
        }
    }

    /// The words of a key in small letters: a word begins at a capital behind another character, and at the last of several capitals
    /// before a small letter, so that `myURLProperty` is `my`, `url`, `property`.
    private static func separated(_ key: String, by separator: Character) -> String {
        let characters = Array(key)
        var result = ""
        for (index, character) in characters.enumerated() {
            let before = index > 0 ? characters[index - 1] : separator
            let after = index + 1 < characters.count ? characters[index + 1] : separator
            let beginsWord = character.isUppercase && (before.isLetter || before.isNumber) && (!before.isUppercase || after.isLowercase)
            if beginsWord { result.append(separator) }
            result += character.lowercased()
        }
        return result
    }
}

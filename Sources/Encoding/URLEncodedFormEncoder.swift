// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Encodes `Encodable` values as `key=value` pairs joined by `&`, percent-encoded like ``URLEncoding``.
///
/// The top-level value must have keys: a structure, a class or a dictionary. Numbers are written in decimal, whole numbers without a
/// fraction; `Decimal` and `URL` as text. Equal values have equal encodings while `alphabetizeKeyValuePairs` is on.
public struct URLEncodedFormEncoder: Sendable {
    /// How the keys of array elements are written.
    public enum ArrayEncoding: Sendable {
        /// `key[]`.
        case brackets
        /// The array's own key: `key`.
        case noBrackets
        /// `key[0]`, `key[1]` and so on.
        case indexInBrackets
        /// The result of the closure for the array's key and the element's index, percent-encoded afterwards.
        case custom(@Sendable (_ key: String, _ index: Int) -> String)
    }

    /// How Booleans are written.
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
        /// The result of the closure.
        case custom(@Sendable (Data) throws -> String)
    }

    /// How dates are written.
    public enum DateEncoding: Sendable {
        /// As `Date` encodes itself: seconds since 1 January 2001, 00:00 UTC.
        case deferredToDate
        /// Seconds since 1 January 1970, 00:00 UTC.
        case secondsSince1970
        /// Milliseconds since 1 January 1970, 00:00 UTC.
        case millisecondsSince1970
        /// In UTC, as `2026-01-31T12:00:00Z` (ISO 8601, RFC 3339).
        case iso8601
        /// The result of the formatter, which must not be modified during encoding.
        case formatted(DateFormatter)
        /// The result of the closure.
        case custom(@Sendable (Date) throws -> String)
    }

    /// How keys are written, at every depth, including the keys of dictionaries.
    public enum KeyEncoding: Sendable {
        /// Unchanged.
        case useDefaultKeys
        /// `oneTwoThree` becomes `one_two_three`.
        case convertToSnakeCase
        /// `oneTwoThree` becomes `one-two-three`.
        case convertToKebabCase
        /// The first letter in uppercase.
        case capitalized
        /// In uppercase.
        case uppercased
        /// In lowercase.
        case lowercased
        /// The result of the closure.
        case custom(@Sendable (String) -> String)
    }

    /// How nested keys are written.
    public struct KeyPathEncoding: Sendable {
        /// `parent[child]`.
        public static let brackets = KeyPathEncoding { "[\($0)]" }
        /// `parent.child`.
        public static let dots = KeyPathEncoding { ".\($0)" }

        let encode: @Sendable (String) -> String

        /// Creates an encoding that appends the result of the closure for a nested key to its parent's key.
        @preconcurrency
        public init(encoding: @escaping @Sendable (_ subkey: String) -> String) {
            encode = encoding
        }
    }

    /// How `nil` is written.
    public struct NilEncoding: Sendable {
        /// Omitted, both key and value.
        public static let dropKey = NilEncoding { nil }
        /// The key without a value, `key=`.
        public static let dropValue = NilEncoding { "" }
        /// `key=null`.
        public static let null = NilEncoding { "null" }

        let encode: @Sendable () -> String?

        /// Creates an encoding that writes the closure's result as the value; `nil` omits key and value.
        @preconcurrency
        public init(encoding: @escaping @Sendable () -> String?) {
            encode = encoding
        }
    }

    /// How spaces are written.
    public enum SpaceEncoding: Sendable, Hashable {
        /// `%20`.
        case percentEscaped
        /// `+`, as in HTML forms.
        case plusReplaced
    }

    /// Whether pairs are sorted by key, at every depth; otherwise they are in the order of encoding, which is undefined for dictionaries.
    package let alphabetizeKeyValuePairs: Bool
    /// How the keys of array elements are written.
    package let arrayEncoding: ArrayEncoding
    /// How Booleans are written.
    package let boolEncoding: BoolEncoding
    /// How `Data` is written.
    package let dataEncoding: DataEncoding
    /// How dates are written.
    package let dateEncoding: DateEncoding
    /// How keys are written.
    package let keyEncoding: KeyEncoding
    /// How nested keys are written.
    package let keyPathEncoding: KeyPathEncoding
    /// How `nil` is written.
    package let nilEncoding: NilEncoding
    /// How spaces are written.
    package let spaceEncoding: SpaceEncoding

    /// Creates an encoder.
    ///
    /// - Parameters:
    ///   - alphabetizeKeyValuePairs: whether pairs are sorted by key; `true` by default.
    ///   - arrayEncoding: `key[]` by default.
    ///   - boolEncoding: `1` and `0` by default.
    ///   - dataEncoding: Base64 by default.
    ///   - dateEncoding: seconds since 2001 by default, as `Date` encodes itself.
    ///   - keyEncoding: unchanged by default.
    ///   - keyPathEncoding: `parent[child]` by default.
    ///   - nilEncoding: omitted by default.
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

    /// Returns the percent-encoded pairs of a value.
    ///
    /// - Throws: `EncodingError.invalidValue` for a top-level value without keys, or one nested more than 512 levels deep; errors thrown
    ///   by the value or a closure.
    public func encode(_ value: some Encodable) throws -> String {
        let encoder = FormEncoder(self)
        let node = try encoder.node(of: value)
        guard case .keyed = node.content else {
            throw EncodingError.invalidValue(
                value, EncodingError.Context(codingPath: [], debugDescription: "The top-level value has no keys, which a form requires."))
        }
        var pairs: [String] = []
        try write(node, key: "", isTopLevel: true, into: &pairs)
        return pairs.joined(separator: "&")
    }

    /// Returns the percent-encoded pairs of a value, as bytes. See ``encode(_:)-(Encodable)``.
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
        // Every "%20" is a space: percent signs in the text have been escaped as "%25".
        return spaceEncoding == .plusReplaced ? escaped.replacingScalars("%20", with: "+") : escaped
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

    /// Splits a key into lowercase words. A word begins at an uppercase letter after another character, and at the last of several
    /// uppercase letters before a lowercase one, so that `myURLProperty` becomes `my`, `url`, `property`.
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

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Decodes values from JSON like `JSONDecoder`, several times as fast.
///
/// Accepts the same input and strategies, produces the same values, and throws the same `DecodingError`s with the same coding paths: code
/// written for `JSONDecoder` works with this decoder. A `dataCorrupted` error for malformed JSON reports line and column in its
/// `underlyingError`.
///
///     var decoder = FastJSONDecoder()
///     decoder.keyDecodingStrategy = .convertFromSnakeCase
///     let user = try await manager.request(url).serializingDecodable(User.self, decoder: decoder).value
///
/// Not supported: JSON5 (`allowsJSON5`), `DecodableWithConfiguration`, and input of 4 GiB or more, which throws `dataCorrupted`. Both
/// decoders limit the nesting of arrays and objects to 512 levels. If several values of a dictionary are invalid, the first one in the
/// text is reported; `JSONDecoder` reports the first in hash order.
///
/// A value type: each copy has its own options, and decoding is thread-safe.
public struct FastJSONDecoder: DataDecoder {
    /// The strategy for dates; by default, seconds since the reference date, 1 January 2001.
    public var dateDecodingStrategy = JSONDecoder.DateDecodingStrategy.deferredToDate

    /// The strategy for `Data`; Base64 by default.
    public var dataDecodingStrategy = JSONDecoder.DataDecodingStrategy.base64

    /// The conversion of JSON keys to coding keys; none by default, which is the fastest.
    ///
    /// The keys of dictionaries with `String` keys are never converted.
    public var keyDecodingStrategy = JSONDecoder.KeyDecodingStrategy.useDefaultKeys

    /// The strings that represent infinity and NaN; none by default.
    public var nonConformingFloatDecodingStrategy = JSONDecoder.NonConformingFloatDecodingStrategy.throw

    /// The `userInfo` of the decoders passed to `init(from:)`; empty by default.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// Whether input without enclosing braces is read as the contents of a dictionary; `false` by default.
    public var assumesTopLevelDictionary = false

    /// Makes a decoder with the default strategies.
    public init() {}

    /// Decodes a value from JSON in UTF-8, UTF-16 or UTF-32.
    ///
    /// Runs on the caller's thread and retains nothing; a decoder stored by an `init(from:)` stays valid, as it owns a copy of the text.
    ///
    /// - Throws: `DecodingError.dataCorrupted` for malformed JSON (RFC 8259, but a trailing comma is allowed) and for numbers out of the
    ///   type's range; other `DecodingError` cases where text and type do not match; errors thrown by an `init(from:)`.
    public func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        var document: JSONDocument?
        do {
            let text = try JSONDocument(data, JSONDecodingOptions(self))
            document = text
            return try JSONValueDecoder(text).decode(type)
        } catch var error as JSONSyntaxError {
            error.position = error.position ?? document?.position(of: error.offset)
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "The given data was not valid JSON.", underlyingError: error))
        }
    }
}

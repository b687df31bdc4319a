// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Decodes values from JSON like `JSONDecoder`, several times as fast.
///
/// Takes the same texts and strategies, makes the same values, and throws the same `DecodingError`s with the same coding paths:
/// what reads from `JSONDecoder` reads from this one. A `dataCorrupted` for text that is no JSON tells its line and column in
/// `underlyingError`.
///
///     var decoder = FastJSONDecoder()
///     decoder.keyDecodingStrategy = .convertFromSnakeCase
///     let user = try await session.request(url).serializingDecodable(User.self, decoder: decoder).value
///
/// What `JSONDecoder` can do beyond this: JSON5 (`allowsJSON5`), types that are `DecodableWithConfiguration`, texts of 4 GiB and
/// more, which are `dataCorrupted` here. Arrays and objects may be nested 512 deep in both. Of several wrong values in a dictionary
/// the first in the text is reported, where `JSONDecoder` goes by the order of hashes.
///
/// A value type: copies have options of their own, and any thread may decode with any of them.
public struct FastJSONDecoder: DataDecoder {
    /// How dates are decoded; as seconds since the reference date, 1 January 2001, by default.
    public var dateDecodingStrategy = JSONDecoder.DateDecodingStrategy.deferredToDate

    /// How `Data` is decoded; from Base64 by default.
    public var dataDecodingStrategy = JSONDecoder.DataDecodingStrategy.base64

    /// How the text's keys become those of types; unchanged by default, which is the fastest.
    ///
    /// Keys of dictionaries with strings for keys are never changed.
    public var keyDecodingStrategy = JSONDecoder.KeyDecodingStrategy.useDefaultKeys

    /// Which strings stand for infinity and for what is no number; none by default.
    public var nonConformingFloatDecodingStrategy = JSONDecoder.NonConformingFloatDecodingStrategy.throw

    /// What types find in their decoder's `userInfo`; empty by default.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// Whether a text without braces around it is read as the inside of a dictionary; `false` by default.
    public var assumesTopLevelDictionary = false

    /// Makes a decoder with the default strategies.
    public init() {}

    /// Makes a value of JSON in UTF-8, UTF-16 or UTF-32.
    ///
    /// Works on the caller's thread and keeps nothing; a decoder that a type kept lives on with a copy of the text.
    ///
    /// - Throws: `DecodingError.dataCorrupted` for what is no JSON (RFC 8259, but a comma may follow the last element), or holds
    ///   numbers out of a type's range; other cases of `DecodingError` where text and type do not fit; what types throw.
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

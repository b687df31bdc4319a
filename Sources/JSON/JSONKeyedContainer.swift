// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A keyed container of an object. The first of equal keys wins.
struct JSONKeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    // A single reference, because the standard library copies the container for each value.
    private let decoder: JSONValueDecoder

    /// Creates a container of an object whose keys the decoder has examined.
    init(_ decoder: JSONValueDecoder) { self.decoder = decoder }

    private var tape: JSONTape { decoder.tape }

    var codingPath: [any CodingKey] { decoder.codingPath }

    var allKeys: [Key] { (decoder.names?.all ?? tape.keys(at: decoder.index)).compactMap(Key.init(stringValue:)) }

    func contains(_ key: Key) -> Bool { find(key) != nil }

    func decodeNil(forKey key: Key) throws -> Bool { tape[try index(of: key)].kind == .null }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try plain(key) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try plain(key) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try plain(key) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try plain(key) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try plain(key) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try plain(key) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try plain(key) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try plain(key) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try plain(key) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try plain(key) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try plain(key) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try plain(key) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try plain(key) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try plain(key) }
    @available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try plain(key) }
    @available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try plain(key) }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try nested(at: try index(of: key), key).value(type, in: decoder)
    }

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try plainIfPresent(key) }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try plainIfPresent(key) }
    @available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
    func decodeIfPresent(_ type: Int128.Type, forKey key: Key) throws -> Int128? { try plainIfPresent(key) }
    @available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
    func decodeIfPresent(_ type: UInt128.Type, forKey key: Key) throws -> UInt128? { try plainIfPresent(key) }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let index = findPresent(key) else { return nil }
        return try nested(at: index, key).value(type, in: decoder)
    }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
        try nested(at: try index(of: key), key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try nested(at: try index(of: key), key).unkeyedContainer()
    }

    // A missing value decodes as `null`.
    func superDecoder() throws -> any Decoder { nested(at: find(JSONKey.super) ?? JSONTape.null, JSONKey.super) }
    func superDecoder(forKey key: Key) throws -> any Decoder { nested(at: find(key) ?? JSONTape.null, key) }

    // MARK: Private

    @inline(__always)
    private func nested(at index: Int, _ key: any CodingKey) -> JSONValueDecoder { JSONValueDecoder(decoder, key, at: index) }

    @inline(__always)
    private func find(_ key: some CodingKey) -> Int? {
        if let names = decoder.names { return names[key.stringValue] }
        return tape.find(key.stringValue, at: decoder.index)
    }

    @inline(__always)
    private func findPresent(_ key: Key) -> Int? {
        guard let index = find(key), tape[index].kind != .null else { return nil }
        return index
    }

    @inline(__always)
    private func index(of key: Key) throws -> Int {
        guard let index = find(key) else { throw missing(key) }
        return index
    }

    @inline(never)
    private func missing(_ key: Key) -> DecodingError {
        .keyNotFound(
            key, .init(codingPath: codingPath, debugDescription: "No value associated with key \(key) (\"\(key.stringValue)\")."))
    }

    @inline(__always)
    private func plain<T: JSONPlainValue>(_ key: Key) throws -> T { try plain(at: try index(of: key), key) }

    @inline(__always)
    private func plainIfPresent<T: JSONPlainValue>(_ key: Key) throws -> T? {
        guard let index = findPresent(key) else { return nil }
        return try plain(at: index, key)
    }

    @inline(__always)
    private func plain<T: JSONPlainValue>(at index: Int, _ key: Key) throws -> T {
        do throws(ValueFailure) {
            return try T.read(decoder, at: index)
        } catch {
            throw decoder.error(error, T.self, at: index, key: key)
        }
    }
}

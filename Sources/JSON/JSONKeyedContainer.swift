// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An object, by key. Of several equal keys the first one counts.
struct JSONKeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let decoder: JSONValueDecoder
    private let tape: JSONTape
    private let path: CodingPath?
    private let object: Int
    /// For objects in which keys cannot be found by their bytes.
    private let keys: JSONKeyIndex?

    init(_ decoder: JSONValueDecoder, at index: Int, path: CodingPath?) throws {
        self.decoder = decoder
        tape = decoder.tape
        self.path = path
        object = index
        keys = decoder.options.usesDefaultKeys && tape.hasPlainKeys(at: index)
            ? nil : try JSONKeyIndex(of: decoder, at: index, path: path)
    }

    var codingPath: [any CodingKey] { path.keys }

    var allKeys: [Key] { keys?.names.compactMap(Key.init(stringValue:)) ?? tape.keys(at: object).compactMap(Key.init(stringValue:)) }

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
        try decoder.value(type, at: try index(of: key), path: CodingPath(path, key))
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
        return try decoder.value(type, at: index, path: CodingPath(path, key))
    }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
        try decoder.keyedContainer(at: try index(of: key), path: CodingPath(path, key))
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decoder.unkeyedContainer(at: try index(of: key), path: CodingPath(path, key))
    }

    func superDecoder() throws -> any Decoder { superDecoder(at: JSONKey.super) }

    func superDecoder(forKey key: Key) throws -> any Decoder { superDecoder(at: key) }

    // MARK: Private

    /// A decoder of a missing value stands at `null`.
    private func superDecoder(at key: any CodingKey) -> JSONValueDecoder {
        JSONValueDecoder(decoder.document, decoder.options, at: find(key) ?? JSONTape.null, path: CodingPath(path, key))
    }

    @inline(__always)
    private func find(_ key: some CodingKey) -> Int? {
        if let keys { return keys[key.stringValue] }
        return tape.find(key.stringValue, at: object)
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
            throw decoder.error(error, T.self, at: index, path: CodingPath(path, key).keys)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An unkeyed container of an array. After a failed decoding, the same element is next again.
struct JSONUnkeyedContainer: UnkeyedDecodingContainer {
    private let decoder: JSONValueDecoder
    private var next: Int
    private(set) var currentIndex = 0

    init(_ decoder: JSONValueDecoder) {
        self.decoder = decoder
        next = decoder.index + 2
    }

    private var length: Int { decoder.tape.count(at: decoder.index) }

    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { length }
    var isAtEnd: Bool { currentIndex >= length }

    mutating func decodeNil() throws -> Bool {
        let index = try nextIndex(for: Never.self)
        guard decoder.tape[index].kind == .null else { return false }
        advance()
        return true
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try plain() }
    mutating func decode(_ type: String.Type) throws -> String { try plain() }
    mutating func decode(_ type: Double.Type) throws -> Double { try plain() }
    mutating func decode(_ type: Float.Type) throws -> Float { try plain() }
    mutating func decode(_ type: Int.Type) throws -> Int { try plain() }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try plain() }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try plain() }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try plain() }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try plain() }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try plain() }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try plain() }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try plain() }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try plain() }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try plain() }
    @available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try plain() }
    @available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try plain() }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        // The standard library's arrays call this for every element type. Each cast is from a type to itself.
        if type == String.self { return unsafeBitCast(try decode(String.self), to: T.self) }
        if type == Int.self { return unsafeBitCast(try decode(Int.self), to: T.self) }
        if type == Double.self { return unsafeBitCast(try decode(Double.self), to: T.self) }
        let value = try nextDecoder(for: type).value(type, in: decoder)
        advance()
        return value
    }

    mutating func decodeIfPresent(_ type: Bool.Type) throws -> Bool? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: String.Type) throws -> String? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: Double.Type) throws -> Double? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: Float.Type) throws -> Float? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: Int.Type) throws -> Int? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: Int8.Type) throws -> Int8? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: Int16.Type) throws -> Int16? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: Int32.Type) throws -> Int32? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: Int64.Type) throws -> Int64? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: UInt.Type) throws -> UInt? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: UInt8.Type) throws -> UInt8? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: UInt16.Type) throws -> UInt16? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: UInt32.Type) throws -> UInt32? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent(_ type: UInt64.Type) throws -> UInt64? { try isPresent() ? decode(type) : nil }
    @available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
    mutating func decodeIfPresent(_ type: Int128.Type) throws -> Int128? { try isPresent() ? decode(type) : nil }
    @available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
    mutating func decodeIfPresent(_ type: UInt128.Type) throws -> UInt128? { try isPresent() ? decode(type) : nil }
    mutating func decodeIfPresent<T: Decodable>(_ type: T.Type) throws -> T? { try isPresent() ? decode(type) : nil }

    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        let container = try nextDecoder(for: KeyedDecodingContainer<Key>.self).container(keyedBy: type)
        advance()
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try nextDecoder(for: (any UnkeyedDecodingContainer).self).unkeyedContainer()
        advance()
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let result = try nextDecoder(for: (any Decoder).self, otherwise: "Cannot get superDecoder() -- unkeyed container is at end.")
        advance()
        return result
    }

    // MARK: Private

    @inline(__always)
    private mutating func advance() {
        currentIndex += 1
        next = decoder.tape.index(after: next)
    }

    @inline(__always)
    private func nextIndex(for type: Any.Type, otherwise text: String = "Unkeyed container is at end.") throws -> Int {
        guard currentIndex < length else {
            let path = codingPath + [JSONKey.index(currentIndex)]
            throw DecodingError.valueNotFound(type, .init(codingPath: path, debugDescription: text))
        }
        return next
    }

    @inline(__always)
    private func nextDecoder(for type: Any.Type, otherwise text: String = "Unkeyed container is at end.") throws -> JSONValueDecoder {
        JSONValueDecoder(decoder, JSONKey.index(currentIndex), at: try nextIndex(for: type, otherwise: text))
    }

    /// Whether the next value is present and not `null`. Advances past a `null` and, as Foundation does, past the end.
    private mutating func isPresent() -> Bool {
        guard currentIndex < length else {
            currentIndex += 1
            return false
        }
        guard decoder.tape[next].kind == .null else { return true }
        advance()
        return false
    }

    @inline(__always)
    private mutating func plain<T: JSONPlainValue>() throws -> T {
        let index = try nextIndex(for: T.self)
        let value: T
        do throws(ValueFailure) {
            value = try T.read(decoder, at: index)
        } catch {
            throw decoder.error(error, T.self, at: index, key: JSONKey.index(currentIndex))
        }
        advance()
        return value
    }
}

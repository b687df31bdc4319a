// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What types decode themselves from. One for a whole text: it stands at the value being decoded, and goes back when that is done.
final class JSONValueDecoder: Decoder {
    let options: JSONDecodingOptions
    let document: JSONDocument
    let tape: JSONTape
    private(set) var index: Int
    private(set) var path: CodingPath?

    init(_ document: JSONDocument, _ options: JSONDecodingOptions, at index: Int = JSONTape.root, path: CodingPath? = nil) {
        self.document = document
        tape = document.tape
        self.options = options
        self.index = index
        self.path = path
    }

    var codingPath: [any CodingKey] { path.keys }
    var userInfo: [CodingUserInfoKey: Any] { options.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try keyedContainer(at: index, path: path)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try unkeyedContainer(at: index, path: path)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        self
    }

    // MARK: Values

    func keyedContainer<Key: CodingKey>(at index: Int, path: CodingPath?) throws -> KeyedDecodingContainer<Key> {
        guard tape[index].kind == .object else { throw noContainer("keyed", [String: Any].self, at: index, path: path) }
        return KeyedDecodingContainer(try JSONKeyedContainer<Key>(self, at: index, path: path))
    }

    func unkeyedContainer(at index: Int, path: CodingPath?) throws -> any UnkeyedDecodingContainer {
        guard tape[index].kind == .array else { throw noContainer("unkeyed", [Any].self, at: index, path: path) }
        return JSONUnkeyedContainer(self, at: index, path: path)
    }

    /// Any value that is not one of the standard library's plain ones.
    func value<T: Decodable>(_ type: T.Type, at index: Int, path: CodingPath?) throws -> T {
        // Types whose form the options decide, or that have one of their own in JSON. The casts are between a type and itself.
        if type == Date.self { return unsafeBitCast(try date(at: index, path: path), to: T.self) }
        if type == URL.self { return unsafeBitCast(try url(at: index, path: path), to: T.self) }
        if type == Data.self { return unsafeBitCast(try data(at: index, path: path), to: T.self) }
        if type == Decimal.self { return unsafeBitCast(try decimal(at: index, path: path), to: T.self) }
        if !options.usesDefaultKeys, let dictionary = type as? any StringDictionary.Type,
            let value = try dictionary.decode(from: self, at: index, path: path) as? T
        {
            return value
        }
        return try with(index, path) { try T(from: self) }
    }

    /// The value of the whole text.
    func root<T: Decodable>(_ type: T.Type) throws -> T { try value(type, at: index, path: path) }

    /// Stands at another value while the closure runs.
    @inline(__always)
    func with<T>(_ index: Int, _ path: CodingPath?, _ body: () throws -> T) rethrows -> T {
        let (oldIndex, oldPath) = (self.index, self.path)
        self.index = index
        self.path = path
        defer {
            self.index = oldIndex
            self.path = oldPath
        }
        return try body()
    }

    // MARK: Failures

    private func noContainer(_ kind: String, _ type: Any.Type, at index: Int, path: CodingPath?) -> DecodingError {
        if tape[index].kind == .null {
            return .valueNotFound(
                type,
                .init(
                    codingPath: path.keys,
                    debugDescription: "Cannot get \(kind) decoding container -- found null value instead"))
        }
        return mismatch(type, at: index, path: path.keys)
    }

    func mismatch(_ type: Any.Type, at index: Int, path: [any CodingKey]) -> DecodingError {
        .typeMismatch(
            type, .init(codingPath: path, debugDescription: "Expected to decode \(type) but found \(tape.name(at: index)) instead."))
    }

    /// The error that says why the value at an index is no value of the type.
    @inline(never)
    func error(_ failure: ValueFailure, _ type: Any.Type, at index: Int, path: [any CodingKey]) -> any Error {
        switch failure {
        case .isOfOtherType: return mismatch(type, at: index, path: path)
        case .invalid(let error): return error
        case .isNull:
            return DecodingError.valueNotFound(
                type,
                .init(codingPath: path, debugDescription: "Cannot get value of type \(type) -- found null value instead"))
        }
    }
}

// MARK: - SingleValueDecodingContainer

extension JSONValueDecoder: SingleValueDecodingContainer {
    func decodeNil() -> Bool { tape[index].kind == .null }

    func decode(_ type: Bool.Type) throws -> Bool { try plain() }
    func decode(_ type: String.Type) throws -> String { try plain() }
    func decode(_ type: Double.Type) throws -> Double { try plain() }
    func decode(_ type: Float.Type) throws -> Float { try plain() }
    func decode(_ type: Int.Type) throws -> Int { try plain() }
    func decode(_ type: Int8.Type) throws -> Int8 { try plain() }
    func decode(_ type: Int16.Type) throws -> Int16 { try plain() }
    func decode(_ type: Int32.Type) throws -> Int32 { try plain() }
    func decode(_ type: Int64.Type) throws -> Int64 { try plain() }
    func decode(_ type: UInt.Type) throws -> UInt { try plain() }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try plain() }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try plain() }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try plain() }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try plain() }
    @available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
    func decode(_ type: Int128.Type) throws -> Int128 { try plain() }
    @available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
    func decode(_ type: UInt128.Type) throws -> UInt128 { try plain() }

    func decode<T: Decodable>(_ type: T.Type) throws -> T { try value(type, at: index, path: path) }

    @inline(__always)
    private func plain<T: JSONPlainValue>() throws -> T {
        do throws(ValueFailure) {
            return try T.read(self, at: index)
        } catch {
            throw self.error(error, T.self, at: index, path: path.keys)
        }
    }
}

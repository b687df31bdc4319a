// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The decoder of one value. One is created for the root, and one for each nested value that is not a scalar.
final class JSONValueDecoder: Decoder {
    let document: JSONDocument
    let tape: JSONTape
    let index: Int
    private let parent: JSONValueDecoder?
    private let key: (any CodingKey)?
    /// Set for objects whose keys can't be compared byte by byte; created with the first container.
    private(set) var names: JSONKeyIndex?

    init(_ document: JSONDocument) {
        self.document = document
        tape = document.tape
        index = JSONTape.root
        parent = nil
        key = nil
    }

    /// Creates the decoder of a value nested in the parent's value.
    init(_ parent: JSONValueDecoder, _ key: any CodingKey, at index: Int) {
        document = parent.document
        tape = parent.tape
        self.index = index
        self.parent = parent
        self.key = key
    }

    @inline(__always) var options: JSONDecodingOptions { document.options }
    var userInfo: [CodingUserInfoKey: Any] { options.userInfo }

    var codingPath: [any CodingKey] {
        var path: [any CodingKey] = []
        var next: JSONValueDecoder? = self
        while let decoder = next {
            if let key = decoder.key { path.append(key) }
            next = decoder.parent
        }
        path.reverse()
        return path
    }

    // MARK: Containers

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard tape[index].kind == .object else { throw containerError("keyed", [String: Any].self) }
        if names == nil, !options.usesDefaultKeys || !tape.hasPlainKeys(at: index) { names = try JSONKeyIndex(of: self) }
        return KeyedDecodingContainer(JSONKeyedContainer<Key>(self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard tape[index].kind == .array else { throw containerError("unkeyed", [Any].self) }
        return JSONUnkeyedContainer(self)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        self
    }

    // MARK: Values

    /// Decodes a value that is not a scalar.
    ///
    /// - Parameter enclosing: the decoder of the requesting type.
    func value<T: Decodable>(_ type: T.Type, in enclosing: JSONValueDecoder) throws -> T {
        // Types whose format depends on the options, or that have a format of their own. Each cast is from a type to itself.
        if type == Date.self { return unsafeBitCast(try date(in: enclosing), to: T.self) }
        if type == URL.self { return unsafeBitCast(try url(), to: T.self) }
        if type == Data.self { return unsafeBitCast(try data(), to: T.self) }
        if type == Decimal.self { return unsafeBitCast(try decimal(), to: T.self) }
        // Optimizations with the same results.
        if type == [String].self { return unsafeBitCast(try array(String.self), to: T.self) }
        if type == [Int].self { return unsafeBitCast(try array(Int.self), to: T.self) }
        if type == [Double].self { return unsafeBitCast(try array(Double.self), to: T.self) }
        if tape[index].kind == .array, let array = type as? any JSONArray.Type { return try array.decode(from: self, as: type) }
        if !options.usesDefaultKeys, let dictionary = type as? any JSONDictionary.Type {
            return try dictionary.decode(from: self, as: type)
        }
        return try T(from: self)
    }

    // MARK: Failures

    @inline(never)
    func containerError(_ kind: String, _ type: Any.Type) -> DecodingError {
        guard tape[index].kind == .null else { return mismatch(type, at: index, path: codingPath) }
        return .valueNotFound(
            type,
            .init(codingPath: codingPath, debugDescription: "Cannot get \(kind) decoding container -- found null value instead"))
    }

    private func mismatch(_ type: Any.Type, at index: Int, path: [any CodingKey]) -> DecodingError {
        .typeMismatch(
            type, .init(codingPath: path, debugDescription: "Expected to decode \(type) but found \(tape.name(at: index)) instead."))
    }

    /// Returns the error for a value nested under `key`, or for this decoder's own value without a key.
    @inline(never)
    func error(_ failure: ValueFailure, _ type: Any.Type, at index: Int, key: (any CodingKey)? = nil) -> any Error {
        let path = codingPath + (key.map { [$0] } ?? [])
        switch failure {
        case .typeMismatch: return mismatch(type, at: index, path: path)
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

    func decode<T: Decodable>(_ type: T.Type) throws -> T { try value(type, in: self) }

    @inline(__always)
    func plain<T: JSONPlainValue>() throws -> T {
        do throws(ValueFailure) {
            return try T.read(self, at: index)
        } catch {
            throw self.error(error, T.self, at: index)
        }
    }
}

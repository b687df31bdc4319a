// SPDX-License-Identifier: Apache-2.0

/// Arrays of the standard library, filled at once: they would append element by element, asking a container each time.
protocol JSONArray {
    static func decode<T>(from decoder: JSONValueDecoder, as type: T.Type) throws -> T
}

extension Array: JSONArray where Element: Decodable {
    /// - Parameter type: the array's type itself.
    static func decode<T>(from decoder: JSONValueDecoder, as type: T.Type) throws -> T {
        let length = decoder.tape.count(at: decoder.index)
        // No text makes room for much more than it holds: where elements are large, and their text is short, they fail before.
        guard length <= (decoder.document.length &* 8 + 4096) / Swift.max(1, MemoryLayout<Element>.stride) else {
            return unsafeBitCast(try Self(from: decoder), to: type)
        }
        let array = try Self(unsafeUninitializedCapacity: length) { elements, count in
            var container = JSONUnkeyedContainer(decoder)
            while count < length {
                elements.initializeElement(at: count, to: try container.decode(Element.self))
                count += 1
            }
        }
        return unsafeBitCast(array, to: type)
    }
}

/// Dictionaries with strings for keys, which no key strategy changes.
protocol JSONDictionary {
    static func decode<T>(from decoder: JSONValueDecoder, as type: T.Type) throws -> T
}

extension Dictionary: JSONDictionary where Key == String, Value: Decodable {
    /// - Parameter type: the dictionary's type itself.
    static func decode<T>(from decoder: JSONValueDecoder, as type: T.Type) throws -> T {
        let (tape, object) = (decoder.tape, decoder.index)
        guard tape[object].kind == .object else {
            throw decoder.error(tape.failure(at: object), [String: Any].self, at: object)
        }
        var result: Self = [:]
        var next = object + 2
        for _ in 0..<tape.count(at: object) {
            let key = try tape.key(at: next)
            next = tape.index(after: next)
            let value = try JSONValueDecoder(decoder, JSONKey.name(key), at: next).value(Value.self, in: decoder)
            next = tape.index(after: next)
            // The first of equal keys counts.
            if result[key] == nil { result[key] = value }
        }
        return unsafeBitCast(result, to: type)
    }
}

extension JSONValueDecoder {
    /// An array of plain values.
    func array<T: JSONPlainValue>(_ type: T.Type) throws -> [T] {
        guard tape[index].kind == .array else { throw noContainer("unkeyed", [Any].self) }
        let count = tape.count(at: index)
        var values: [T] = []
        values.reserveCapacity(count)
        var next = index + 2
        for position in 0..<count {
            do throws(ValueFailure) {
                values.append(try T.read(self, at: next))
            } catch {
                throw self.error(error, type, at: next, key: JSONKey.index(position))
            }
            next = tape.index(after: next)
        }
        return values
    }
}

// SPDX-License-Identifier: Apache-2.0

/// Arrays, filled in one pass: the standard library's `init(from:)` appends element by element, calling a container for each.
protocol JSONArray {
    static func decode<T>(from decoder: JSONValueDecoder, as type: T.Type) throws -> T
}

extension Array: JSONArray where Element: Decodable {
    /// - Parameter type: the array type itself.
    static func decode<T>(from decoder: JSONValueDecoder, as type: T.Type) throws -> T {
        let length = decoder.tape.count(at: decoder.index)
        // Limits the memory reserved per byte of text: an array of large elements in a short text fails before it is filled.
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

/// Dictionaries with `String` keys, which no key strategy converts.
protocol JSONDictionary {
    static func decode<T>(from decoder: JSONValueDecoder, as type: T.Type) throws -> T
}

extension Dictionary: JSONDictionary where Key == String, Value: Decodable {
    /// - Parameter type: the dictionary type itself.
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
            // The first of equal keys wins.
            if result[key] == nil { result[key] = value }
        }
        return unsafeBitCast(result, to: type)
    }
}

extension JSONValueDecoder {
    /// Decodes an array of scalars.
    func array<T: JSONPlainValue>(_ type: T.Type) throws -> [T] {
        guard tape[index].kind == .array else { throw containerError("unkeyed", [Any].self) }
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

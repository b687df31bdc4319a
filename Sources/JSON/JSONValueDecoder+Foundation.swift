// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension JSONValueDecoder {
    // MARK: Numbers

    /// A number, or one of the strings that the options name.
    @inline(__always)
    func double(at index: Int) throws(ValueFailure) -> Double {
        if let special = options.nonConformingFloats, let value: Double = special.value(of: tape, at: index) { return value }
        return try tape.double(at: index)
    }

    @inline(__always)
    func float(at index: Int) throws(ValueFailure) -> Float {
        if let special = options.nonConformingFloats, let value: Float = special.value(of: tape, at: index) { return value }
        return try tape.float(at: index)
    }

    func decimal(at index: Int, path: CodingPath?) throws -> Decimal {
        do throws(ValueFailure) {
            return try tape.decimal(at: index)
        } catch .isOfOtherType {
            throw DecodingError.typeMismatch(Decimal.self, .init(codingPath: path.keys, debugDescription: ""))
        } catch {
            throw self.error(error, Decimal.self, at: index, path: path.keys)
        }
    }

    // MARK: Strings

    /// A string for a value of another type, which an absent string is said to be.
    private func string(for type: Any.Type, at index: Int, path: CodingPath?) throws -> String {
        do throws(ValueFailure) {
            return try tape.string(at: index)
        } catch .isNull {
            throw self.error(.isNull, type, at: index, path: path.keys)
        } catch {
            throw self.error(error, String.self, at: index, path: path.keys)
        }
    }

    func url(at index: Int, path: CodingPath?) throws -> URL {
        let string = try string(for: URL.self, at: index, path: path)
        guard let url = URL(string: string) else { throw corrupted("Invalid URL string.", path) }
        return url
    }

    // MARK: Data and dates

    func data(at index: Int, path: CodingPath?) throws -> Data {
        if tape[index].kind == .null { throw error(.isNull, Data.self, at: index, path: path.keys) }
        switch options.data {
        case .deferredToData: return try with(index, path) { try Data(from: self) }
        case .custom(let decode): return try with(index, path) { try decode(self) }
        case .base64: break
        @unknown default: break
        }
        let string = try string(for: Data.self, at: index, path: path)
        guard let data = Data(base64Encoded: string) else { throw corrupted("Encountered Data is not valid Base64.", path) }
        return data
    }

    func date(at index: Int, path: CodingPath?) throws -> Date {
        if tape[index].kind == .null { throw error(.isNull, Date.self, at: index, path: path.keys) }
        switch options.date {
        case .deferredToDate: return Date(timeIntervalSinceReferenceDate: try seconds(at: index, path: path))
        case .secondsSince1970: return Date(timeIntervalSince1970: try seconds(at: index, path: path))
        case .millisecondsSince1970: return Date(timeIntervalSince1970: try seconds(at: index, path: path) / 1000)
        case .custom(let decode): return try with(index, path) { try decode(self) }
        case .iso8601:
            let string = try string(for: Date.self, at: index, path: path)
            // Foundation gives the way to the object that the date is in.
            guard let date = try? Date.ISO8601FormatStyle().parse(string) else {
                throw corrupted("Expected date string to be ISO8601-formatted.", self.path)
            }
            return date
        @unknown default:
            let string = try string(for: Date.self, at: index, path: path)
            guard let date = CurlewJSON.date(of: string, by: options.date) else {
                throw corrupted("Date string does not match format expected by formatter.", path)
            }
            return date
        }
    }

    private func seconds(at index: Int, path: CodingPath?) throws -> Double {
        do throws(ValueFailure) {
            return try double(at: index)
        } catch {
            throw self.error(error, Double.self, at: index, path: path.keys)
        }
    }

    private func corrupted(_ text: String, _ path: CodingPath?) -> DecodingError {
        .dataCorrupted(.init(codingPath: path.keys, debugDescription: text))
    }
}

/// Dictionaries with strings for keys, which no key strategy changes.
protocol StringDictionary {
    static func decode(from decoder: JSONValueDecoder, at index: Int, path: CodingPath?) throws -> Any
}

extension Dictionary: StringDictionary where Key == String, Value: Decodable {
    static func decode(from decoder: JSONValueDecoder, at index: Int, path: CodingPath?) throws -> Any {
        let tape = decoder.tape
        guard tape[index].kind == .object else {
            throw decoder.error(tape.failure(at: index), [String: Any].self, at: index, path: path.keys)
        }
        var result: Self = [:]
        var next = index + 2
        for _ in 0..<tape.count(at: index) {
            let key = try tape.key(at: next)
            next = tape.index(after: next)
            let value = try decoder.value(Value.self, at: next, path: CodingPath(path, JSONKey.name(key)))
            next = tape.index(after: next)
            // The first of equal keys counts.
            if result[key] == nil { result[key] = value }
        }
        return result
    }
}

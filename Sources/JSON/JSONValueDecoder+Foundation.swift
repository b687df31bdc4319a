// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension JSONValueDecoder {
    // MARK: Numbers

    /// Returns a number, or the value of one of the strings named by the options.
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

    func decimal() throws -> Decimal {
        do throws(ValueFailure) {
            return try tape.decimal(at: index)
        } catch .typeMismatch {
            throw DecodingError.typeMismatch(Decimal.self, .init(codingPath: codingPath, debugDescription: ""))
        } catch {
            throw self.error(error, Decimal.self, at: index)
        }
    }

    // MARK: Strings

    /// Returns the string for a value of another type; a `null` is reported as a missing value of that type.
    private func string(for type: Any.Type) throws -> String {
        do throws(ValueFailure) {
            return try tape.string(at: index)
        } catch .isNull {
            throw self.error(.isNull, type, at: index)
        } catch {
            throw self.error(error, String.self, at: index)
        }
    }

    func url() throws -> URL {
        guard let url = URL(string: try string(for: URL.self)) else { throw corrupted("Invalid URL string.") }
        return url
    }

    // MARK: Data and dates

    func data() throws -> Data {
        guard tape[index].kind != .null else { throw error(.isNull, Data.self, at: index) }
        switch options.data {
        case .deferredToData: return try Data(from: self)
        case .custom(let decode): return try decode(self)
        case .base64: break
        @unknown default: break
        }
        guard let data = Data(base64Encoded: try string(for: Data.self)) else {
            throw corrupted("Encountered Data is not valid Base64.")
        }
        return data
    }

    /// - Parameter enclosing: the decoder of the requesting type.
    func date(in enclosing: JSONValueDecoder) throws -> Date {
        guard tape[index].kind != .null else { throw error(.isNull, Date.self, at: index) }
        switch options.date {
        case .deferredToDate: return Date(timeIntervalSinceReferenceDate: try plain())
        case .secondsSince1970: return Date(timeIntervalSince1970: try plain())
        case .millisecondsSince1970: return Date(timeIntervalSince1970: try plain() / 1000)
        case .custom(let decode): return try decode(self)
        case .iso8601:
            let string = try string(for: Date.self)
            // Foundation reports the coding path of the object that contains the date.
            guard let date = try? Date.ISO8601FormatStyle().parse(string) else {
                throw enclosing.corrupted("Expected date string to be ISO8601-formatted.")
            }
            return date
        @unknown default:
            let string = try string(for: Date.self)
            guard let date = CurlewJSON.date(of: string, by: options.date) else {
                throw corrupted("Date string does not match format expected by formatter.")
            }
            return date
        }
    }

    private func corrupted(_ text: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: codingPath, debugDescription: text))
    }
}

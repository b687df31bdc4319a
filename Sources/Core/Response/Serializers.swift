// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The built-in serializers. For the statuses 204 and 205, which have no content (RFC 9110, sections 15.3.5 and 15.3.6), each gives its
/// empty value, where it has one.
package enum Serializers {
    private static func isEmpty(_ head: ResponseHead?) -> Bool {
        head?.statusCode == 204 || head?.statusCode == 205
    }

    private static func failure(_ reason: CurlewError.ResponseSerializationFailureReason) -> CurlewError {
        .responseSerializationFailed(reason: reason)
    }

    package static let data = DataResponseSerializer<Data> { head, data in
        if isEmpty(head) { return Data() }
        guard let data else { throw failure(.inputDataNil) }
        return data
    }

    package static func string(_ encoding: String.Encoding?) -> DataResponseSerializer<String> {
        DataResponseSerializer { head, data in
            if isEmpty(head) { return "" }
            guard let data else { throw failure(.inputDataNil) }
            let actual = encoding ?? head?.value(for: "Content-Type").flatMap { String.Encoding(contentType: $0) } ?? .isoLatin1
            guard let string = String(data: data, encoding: actual) else { throw failure(.stringSerializationFailed(encoding: actual)) }
            return string
        }
    }

    package static func json(_ options: JSONSerialization.ReadingOptions) -> DataResponseSerializer<Any> {
        DataResponseSerializer { head, data in
            if isEmpty(head) { return NSNull() }
            guard let data, !data.isEmpty else { throw failure(.inputDataNilOrZeroLength) }
            do {
                return try JSONSerialization.jsonObject(with: data, options: options)
            } catch {
                throw failure(.jsonSerializationFailed(error: error))
            }
        }
    }

    package static func propertyList(_ options: PropertyListSerialization.ReadOptions) -> DataResponseSerializer<Any> {
        DataResponseSerializer { head, data in
            if isEmpty(head) { return NSNull() }
            guard let data, !data.isEmpty else { throw failure(.inputDataNilOrZeroLength) }
            do {
                return try PropertyListSerialization.propertyList(from: data, options: options, format: nil)
            } catch {
                throw failure(.propertyListSerializationFailed(error: error))
            }
        }
    }

    package static func decodable<Value: Decodable & Sendable>(_ type: Value.Type, _ decoder: any DataDecoder) -> DataResponseSerializer<
        Value
    > {
        DataResponseSerializer { _, data in
            guard let data, !data.isEmpty else { throw failure(.inputDataNilOrZeroLength) }
            do {
                return try decoder.decode(Value.self, from: data)
            } catch {
                throw failure(.decodingFailed(error: error))
            }
        }
    }
}

extension String.Encoding {
    /// The encoding that the `charset` parameter of a content type names (RFC 9110, section 8.3.2); `nil` without one, and for one that
    /// Foundation can't read.
    package init?(contentType: String) {
        for parameter in contentType.splitScalars(separator: ";").dropFirst() {
            let parts = parameter.splitScalars(separator: "=", maxSplits: 1).map {
                $0.filterScalars { $0 != " " && $0 != "\"" && $0 != "'" }
            }
            guard parts.count == 2, parts[0].equalsIgnoringASCIICase("charset") else { continue }
            self.init(charset: parts[1])
            return
        }
        return nil
    }

    /// The encoding of a charset's IANA name; `nil` for one that Foundation can't read.
    fileprivate init?(charset: String) {
        switch charset.lowercased() {
        case "utf-8", "utf8": self = .utf8
        case "us-ascii", "ascii": self = .ascii
        case "iso-8859-1", "latin1", "l1": self = .isoLatin1
        case "iso-8859-2", "latin2": self = .isoLatin2
        case "windows-1250", "cp1250": self = .windowsCP1250
        case "windows-1251", "cp1251": self = .windowsCP1251
        case "windows-1252", "cp1252": self = .windowsCP1252
        case "windows-1253", "cp1253": self = .windowsCP1253
        case "windows-1254", "cp1254": self = .windowsCP1254
        case "utf-16": self = .utf16
        case "utf-16be": self = .utf16BigEndian
        case "utf-16le": self = .utf16LittleEndian
        case "utf-32": self = .utf32
        case "utf-32be": self = .utf32BigEndian
        case "utf-32le": self = .utf32LittleEndian
        case "shift_jis", "shift-jis", "sjis": self = .shiftJIS
        case "euc-jp": self = .japaneseEUC
        case "iso-2022-jp": self = .iso2022JP
        case "macintosh": self = .macOSRoman
        default: return nil
        }
    }
}

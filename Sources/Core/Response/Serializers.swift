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
            if let encoding {
                guard let string = String(data, in: encoding) else { throw failure(.stringSerializationFailed(encoding: encoding)) }
                return string
            }
            let body = EncodedText(data, contentType: head?.value(for: "Content-Type"))
            if let charset = body.unknownCharset { throw failure(.unknownCharset(charset)) }
            guard let string = body.text ?? body.latin1Text else { throw failure(.stringSerializationFailed(encoding: body.encoding)) }
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
                try PropertyListBounds.check(data, limitsText: false)
                return try PropertyListSerialization.propertyList(from: data, options: options, format: nil)
            } catch {
                throw failure(.propertyListSerializationFailed(error: error))
            }
        }
    }

    /// `nil` as a value of the type, if that is an optional one: what an empty body is decoded as.
    package static func none<Value>(of type: Value.Type) -> Value? {
        (type as? any ExpressibleByNilLiteral.Type).flatMap { $0.init(nilLiteral: ()) as? Value }
    }

    package static func decodable<Value: Decodable & Sendable>(_ type: Value.Type, _ decoder: any DataDecoder) -> DataResponseSerializer<
        Value
    > {
        DataResponseSerializer { head, data in
            guard let data, !data.isEmpty else {
                if head != nil, let none = none(of: type) { return none }
                throw failure(.inputDataNilOrZeroLength)
            }
            do {
                return try decode(type, from: data, decoder)
            } catch {
                throw failure(.decodingFailed(error: error))
            }
        }
    }

    /// Decodes a value, of a property list only within bounds.
    static func decode<Value: Decodable & Sendable>(_ type: Value.Type, from data: Data, _ decoder: any DataDecoder) throws -> Value {
        if decoder is PropertyListDecoder { try PropertyListBounds.check(data, limitsText: true) }
        return try decoder.decode(type, from: data)
    }
}

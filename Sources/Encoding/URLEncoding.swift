// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP

/// Writes parameters as `key=value` pairs into the URL's query or into the body, as HTML forms do.
///
/// Names come sorted, at every depth. Of the values
/// - an array gives a pair for each element, `key[]=1&key[]=2`, a set likewise, sorted; an empty one gives none,
/// - a dictionary gives a pair for each entry, `key[name]=1`; an empty one gives none,
/// - a Boolean is written as ``boolEncoding`` says, whether it is a Swift `Bool`, an `NSNumber` of one, or read from JSON,
/// - a number is written in decimal, whole ones without a fraction: `1` for 1 and for 1.0,
/// - `NSNull` gives an empty value, `key=`; `nil` gives no pair,
/// - `Data` is written in Base64 (RFC 4648, section 4), a `URL` as its absolute string,
/// - everything else is written as its description; a `Date` is `1970-01-01 00:00:00 +0000`.
///
/// A space becomes `%20`, never `+`.
public struct URLEncoding: ParameterEncoding {
    /// Where the pairs go.
    public enum Destination: Sendable, Hashable {
        /// Into the query for GET, HEAD and DELETE, into the body for every other method.
        case methodDependent
        /// Into the query, behind what stands there.
        case queryString
        /// Into the body, in place of what stands there.
        case httpBody
    }

    /// How the name of an array's element is written.
    public enum ArrayEncoding: Sendable, Hashable {
        /// With brackets, percent-encoded: `key%5B%5D=value`.
        case brackets
        /// As the array's own: `key=value`.
        case noBrackets

        fileprivate func encode(_ key: String) -> String {
            self == .brackets ? key + "[]" : key
        }
    }

    /// How a Boolean is written.
    public enum BoolEncoding: Sendable, Hashable {
        /// `1` and `0`.
        case numeric
        /// `true` and `false`.
        case literal

        fileprivate func encode(_ value: Bool) -> String {
            switch self {
            case .numeric: value ? "1" : "0"
            case .literal: value ? "true" : "false"
            }
        }
    }

    /// The encoding with all defaults.
    public static var `default`: URLEncoding { URLEncoding() }
    /// The encoding into the query or the body, as the method has it: the default.
    public static var methodDependent: URLEncoding { URLEncoding() }
    /// The encoding into the query, whatever the method.
    public static var queryString: URLEncoding { URLEncoding(destination: .queryString) }
    /// The encoding into the body, whatever the method.
    public static var httpBody: URLEncoding { URLEncoding(destination: .httpBody) }

    /// Where the pairs go.
    public let destination: Destination
    /// How the name of an array's element is written.
    public let arrayEncoding: ArrayEncoding
    /// How a Boolean is written.
    public let boolEncoding: BoolEncoding

    /// Makes an encoding; by default the method says where the pairs go, arrays have brackets and Booleans are `1` and `0`.
    public init(
        destination: Destination = .methodDependent, arrayEncoding: ArrayEncoding = .brackets, boolEncoding: BoolEncoding = .numeric
    ) {
        self.destination = destination
        self.arrayEncoding = arrayEncoding
        self.boolEncoding = boolEncoding
    }

    /// The request with the parameters in its query or its body.
    ///
    /// A query that the URL has stays as it is, in front; so does a fragment, behind. Parameters that give no pair leave the URL alone.
    /// A body replaces the one before it, be it empty, and its content type is `application/x-www-form-urlencoded; charset=utf-8`
    /// unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:)`` for a query without a URL,
    ///   ``CurlewError/urlRequestValidationFailed(reason:)`` for a body without one; what `urlRequest` throws.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        var request = try urlRequest.asURLRequest()
        guard let parameters else { return request }

        try request.setPairs(query(parameters), destination)
        return request
    }

    /// The pairs that a value gives under a key, names and values percent-encoded.
    public func queryComponents(fromKey key: String, value: Any) -> [(String, String)] {
        // Collections come before `NSNumber`: on Linux, asking an array whether it is an object copies it into an NSArray, all levels.
        switch value {
        case let optional as any OptionalValue:
            optional.wrappedValue.map { queryComponents(fromKey: key, value: $0) } ?? []
        case let string as String:
            [(escape(key), escape(string))]
        case let dictionary as [String: Any]:
            queryComponents(fromKey: key, entries: dictionary)
        case let dictionary as [AnyHashable: Any]:
            queryComponents(fromKey: key, entries: dictionary.map { (key: "\($0.key)", value: $0.value) })
        case let array as [Any]:
            queryComponents(fromKey: key, elements: array)
        case let set as Set<AnyHashable>:
            queryComponents(fromKey: key, elements: Array(set)).sorted { $0 < $1 }
        default:
            [(escape(key), escape(text(of: value)))]
        }
    }

    /// The string percent-encoded for a query or a form: all but letters, digits and `-._~/?` (RFC 3986, sections 2.3 and 3.4).
    public func escape(_ string: String) -> String {
        PercentEncoding.escape(string)
    }

    private func query(_ parameters: Parameters) -> String {
        parameters.sorted { $0.key < $1.key }
            .flatMap { queryComponents(fromKey: $0.key, value: $0.value) }
            .map { "\($0)=\($1)" }
            .joined(separator: "&")
    }

    private func queryComponents(fromKey key: String, entries: some Sequence<(key: String, value: Any)>) -> [(String, String)] {
        entries.sorted { $0.key < $1.key }.flatMap { queryComponents(fromKey: "\(key)[\($0.key)]", value: $0.value) }
    }

    private func queryComponents(fromKey key: String, elements: [Any]) -> [(String, String)] {
        elements.flatMap { queryComponents(fromKey: arrayEncoding.encode(key), value: $0) }
    }

    /// A single value, not yet escaped.
    private func text(of value: Any) -> String {
        switch value {
        case is NSNull: ""
        case let data as Data: data.base64EncodedString()
        case let url as URL: url.absoluteString
        // The description of a date that is no number traps on Linux.
        case let date as Date where !date.timeIntervalSince1970.isFinite: "\(date.timeIntervalSince1970)"
        case let number as NSNumber: number.boolValueIfBool.map(boolEncoding.encode) ?? Self.wholeWithoutFraction(number.stringValue)
        case let number as any BinaryFloatingPoint: Self.wholeWithoutFraction("\(number)")
        default: "\(value)"
        }
    }

    /// `1` for `1.0`: Swift writes the fraction, the wire form has none.
    static func wholeWithoutFraction(_ number: String) -> String {
        number.hasSuffix(".0") ? String(number.dropLast(2)) : number
    }
}

// MARK: - Values

/// An `Optional` in an `Any`, which a cast to its wrapped type would not tell from the value.
private protocol OptionalValue {
    var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var wrappedValue: Any? { self }
}

extension NSNumber {
    /// The Boolean, when the number was made of one.
    ///
    /// `as? Bool` takes any 0 and 1 for one, and `objCType` is the same for `Int8` on Apple's platforms; the class tells them apart.
    fileprivate var boolValueIfBool: Bool? {
        type(of: self) == type(of: NSNumber(value: true)) ? boolValue : nil
    }
}

// MARK: - Queries

extension URLRequest {
    /// Writes pairs as of `a=1&b=2`, which are percent-encoded already, into the query or the body.
    ///
    /// In the query they go behind what stands there; none leave the URL alone. As a body they replace the one before, be there none, with
    /// the content type `application/x-www-form-urlencoded; charset=utf-8` unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:)`` for a query without a URL,
    ///   ``CurlewError/urlRequestValidationFailed(reason:)`` for a body without one, ``CurlewError/invalidURL(url:)`` for pairs that a URL
    ///   can't hold.
    public mutating func setPairs(_ pairs: String, _ destination: URLEncoding.Destination) throws(CurlewError) {
        if destination.isQuery(method: httpMethod ?? HTTPMethod.get.rawValue) {
            guard let url else { throw .parameterEncodingFailed(reason: .missingURL) }
            self.url = try url.appendingQuery(pairs)
        } else {
            try setBody(Data(pairs.utf8), contentType: "application/x-www-form-urlencoded; charset=utf-8")
        }
    }
}

extension URLEncoding.Destination {
    fileprivate func isQuery(method: String) -> Bool {
        switch self {
        case .queryString: true
        case .httpBody: false
        case .methodDependent: [HTTPMethod.get, .head, .delete].contains { $0.rawValue == method }
        }
    }
}

extension URL {
    /// The URL with more of a query, which is percent-encoded already, behind the one it has.
    ///
    /// Works on the text: nothing that stands there is decoded, encoded or put in order.
    fileprivate func appendingQuery(_ query: String) throws(CurlewError) -> URL {
        guard !query.isEmpty else { return self }
        let text = absoluteString
        let head = text.prefix { $0 != "#" }
        var separator = "?"
        if let mark = head.firstIndex(of: "?") {
            separator = head.index(after: mark) == head.endIndex ? "" : "&"
        }
        let result = head + separator + query + text[head.endIndex...]
        guard let url = URL(string: String(result), encodingInvalidCharacters: false) else { throw .invalidURL(url: self) }
        return url
    }
}

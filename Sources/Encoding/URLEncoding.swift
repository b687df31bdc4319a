// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP

/// Encodes parameters as `key=value` pairs in the URL's query or the body, as HTML forms do.
///
/// Keys are sorted at every depth. Values are encoded as follows:
/// - an array: a pair for each element, `key[]=1&key[]=2`; a set likewise, sorted; none if it is empty,
/// - a dictionary: a pair for each entry, `key[name]=1`; none if it is empty,
/// - a Boolean: according to ``boolEncoding``, whether it is a Swift `Bool`, an `NSNumber` created from one, or parsed from JSON,
/// - a number: in decimal, whole numbers without a fraction: `1` for both 1 and 1.0,
/// - `NSNull`: an empty value, `key=`; `nil`: no pair,
/// - `Data`: Base64 (RFC 4648, section 4); a `URL`: its absolute string,
/// - any other value: its description, which for a `Date` is `1970-01-01 00:00:00 +0000`.
///
/// A space becomes `%20`, never `+`.
public struct URLEncoding: ParameterEncoding {
    /// The destination of the pairs.
    public enum Destination: Sendable, Hashable {
        /// The query for GET, HEAD and DELETE, the body for all other methods.
        case methodDependent
        /// The query, appended to an existing one.
        case queryString
        /// The body, replacing an existing one.
        case httpBody
    }

    /// How the keys of array elements are written.
    public enum ArrayEncoding: Sendable, Hashable {
        /// With brackets, percent-encoded: `key%5B%5D=value`.
        case brackets
        /// The array's own key: `key=value`.
        case noBrackets

        fileprivate func encode(_ key: String) -> String {
            self == .brackets ? key + "[]" : key
        }
    }

    /// How Booleans are written.
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
    /// The encoding into the query or the body, depending on the method: the default.
    public static var methodDependent: URLEncoding { URLEncoding() }
    /// The encoding into the query, for any method.
    public static var queryString: URLEncoding { URLEncoding(destination: .queryString) }
    /// The encoding into the body, for any method.
    public static var httpBody: URLEncoding { URLEncoding(destination: .httpBody) }

    /// The destination of the pairs.
    public let destination: Destination
    /// How the keys of array elements are written.
    public let arrayEncoding: ArrayEncoding
    /// How Booleans are written.
    public let boolEncoding: BoolEncoding

    /// Creates an encoding; by default the method decides the destination, arrays have brackets and Booleans are `1` and `0`.
    public init(
        destination: Destination = .methodDependent, arrayEncoding: ArrayEncoding = .brackets, boolEncoding: BoolEncoding = .numeric
    ) {
        self.destination = destination
        self.arrayEncoding = arrayEncoding
        self.boolEncoding = boolEncoding
    }

    /// Returns the request with the parameters in its query or its body.
    ///
    /// An existing query is kept, and the pairs are appended to it; a fragment is kept. Parameters without pairs leave the URL unchanged.
    /// The body is replaced, even by an empty one, and gets the content type `application/x-www-form-urlencoded; charset=utf-8` unless the
    /// request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:in:)`` for a query without a URL,
    ///   ``CurlewError/urlRequestValidationFailed(reason:in:)`` for a body without a URL; errors thrown by `urlRequest`.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        var request = try urlRequest.asURLRequest()
        guard let parameters else { return request }

        try request.setPairs(query(parameters), destination)
        return request
    }

    /// Returns the pairs of a value under a key, with names and values percent-encoded.
    public func queryComponents(fromKey key: String, value: Any) -> [(String, String)] {
        // Collections are matched before `NSNumber`: on Linux, casting an array to a class copies it into an NSArray, at every level.
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

    /// Percent-encodes a string for a query or a form: all but letters, digits and `-._~/?` (RFC 3986, sections 2.3 and 3.4).
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

    /// Returns the text of a single value, not escaped.
    private func text(of value: Any) -> String {
        switch value {
        case is NSNull: ""
        case let data as Data: data.base64EncodedString()
        case let url as URL: url.absoluteString
        // The description of a non-finite date traps on Linux.
        case let date as Date where !date.timeIntervalSince1970.isFinite: "\(date.timeIntervalSince1970)"
        case let number as NSNumber: number.boolValueIfBool.map(boolEncoding.encode) ?? Self.withoutZeroFraction(number.stringValue)
        case let number as any BinaryFloatingPoint: Self.withoutZeroFraction("\(number)")
        default: "\(value)"
        }
    }

    /// Drops the fraction of `1.0`, which Swift writes and the wire format omits.
    static func withoutZeroFraction(_ number: String) -> String {
        number.hasByteSuffix(".0") ? String(number.dropLastScalars(2)) : number
    }
}

// MARK: - Values

/// An `Optional` in an `Any`, which a cast to the wrapped type would unwrap implicitly.
private protocol OptionalValue {
    var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var wrappedValue: Any? { self }
}

extension NSNumber {
    /// The Boolean value of a number created from a Boolean.
    ///
    /// `as? Bool` accepts any 0 or 1, and on Apple's platforms `objCType` is the same for `Int8`; only the class distinguishes them.
    fileprivate var boolValueIfBool: Bool? {
        type(of: self) == type(of: NSNumber(value: true)) ? boolValue : nil
    }
}

// MARK: - Queries

extension URLRequest {
    /// Adds percent-encoded pairs such as `a=1&b=2` to the query or the body.
    ///
    /// In the query they are appended to an existing one; no pairs leave the URL unchanged. In the body they replace an existing one, even
    /// if there are none, and set the content type `application/x-www-form-urlencoded; charset=utf-8` unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:in:)`` for a query without a URL,
    ///   ``CurlewError/urlRequestValidationFailed(reason:in:)`` for a body without a URL, ``CurlewError/invalidURL(url:in:)`` for pairs
    ///   that are invalid in a URL.
    package mutating func setPairs(_ pairs: String, _ destination: URLEncoding.Destination) throws(CurlewError) {
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
    /// Returns the URL with a percent-encoded query appended to the existing one.
    ///
    /// Operates on the text: existing components are not decoded, encoded or reordered.
    fileprivate func appendingQuery(_ query: String) throws(CurlewError) -> URL {
        guard !query.isEmpty else { return self }
        let text = absoluteString
        let head = text.prefixScalars { $0 != "#" }
        var separator = "?"
        if let mark = head.unicodeScalars.firstIndex(of: "?") {
            separator = head.index(after: mark) == head.endIndex ? "" : "&"
        }
        let result = head + separator + query + text[head.endIndex...]
        guard let url = URL(string: String(result), encodingInvalidCharacters: false) else { throw .invalidURL(url: self) }
        return url
    }
}

// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP

/// Encodes parameters as a property list in the body.
///
/// Accepts what property lists can represent: strings, numbers, Booleans, `Date`, `Data`, arrays, and dictionaries with `String` keys,
/// nested at most 512 levels deep. Any other value, such as `nil` or `NSNull`, is an error. In XML, so are strings with control characters
/// (XML 1.0, section 2.2) and dates outside the years 1 to 9999.
public struct PropertyListEncoding: ParameterEncoding {
    /// The encoding as XML.
    public static var `default`: PropertyListEncoding { PropertyListEncoding() }
    /// The encoding as XML: the default.
    public static var xml: PropertyListEncoding { PropertyListEncoding(format: .xml) }
    /// The encoding in the binary format.
    public static var binary: PropertyListEncoding { PropertyListEncoding(format: .binary) }

    /// The format. Foundation can't write `openStep`: encoding in it always fails.
    public let format: PropertyListSerialization.PropertyListFormat
    /// The options for `PropertyListSerialization`, which currently has none.
    public let options: PropertyListSerialization.WriteOptions

    /// Creates an encoding; XML without options by default.
    public init(format: PropertyListSerialization.PropertyListFormat = .xml, options: PropertyListSerialization.WriteOptions = 0) {
        self.format = format
        self.options = options
    }

    /// Returns the request with the parameters as a property list in its body.
    ///
    /// Sets the content type `application/x-plist` unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:in:)`` if a property list can't represent the parameters,
    ///   ``CurlewError/urlRequestValidationFailed(reason:in:)`` for a request without a URL; errors thrown by `urlRequest`.
    public func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        var request = try urlRequest.asURLRequest()
        guard let parameters else { return request }
        try request.setBody(data(of: parameters), contentType: "application/x-plist")
        return request
    }

    private func data(of parameters: Parameters) throws(CurlewError) -> Data {
        do {
            try validate(parameters)
            return try PropertyListSerialization.data(fromPropertyList: parameters, format: format, options: options)
        } catch {
            throw .parameterEncodingFailed(reason: .propertyListEncodingFailed(error: error))
        }
    }

    private func validate(_ parameters: Parameters) throws(CocoaError) {
        // Foundation on Linux traps when writing this format.
        guard format != .openStep else { throw .unencodable("Foundation can't write openStep property lists; use xml or binary.") }
        try ParameterTree(format: "a property list", acceptsLeaf: accepts).validate(parameters)
    }

    private func accepts(_ leaf: Any) -> Bool {
        switch leaf {
        // Foundation writes these values to XML, but XML parsers reject the result.
        case let string as String where format == .xml: string.unicodeScalars.allSatisfy(\.isXMLCharacter)
        case let date as Date where format == .xml: datesInXML.contains(date.timeIntervalSince1970)
        case let date as Date: date.timeIntervalSince1970.isFinite
        default: PropertyListSerialization.propertyList(leaf, isValidFor: format)
        }
    }

    /// The years 1 to 9999, in seconds since 1970.
    private var datesInXML: Range<TimeInterval> { -62_135_596_800..<253_402_300_800 }
}

extension Unicode.Scalar {
    /// Whether the scalar is allowed in XML (XML 1.0, section 2.2).
    fileprivate var isXMLCharacter: Bool {
        switch value {
        case 0x09, 0x0A, 0x0D: true
        case 0..<0x20, 0xFFFE, 0xFFFF: false
        default: true
        }
    }
}

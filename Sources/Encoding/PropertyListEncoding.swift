// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP

/// Writes parameters as a property list into the body.
///
/// Takes what property lists hold: strings, numbers, Booleans, `Date`, `Data`, arrays, and dictionaries with strings for keys, at most
/// 512 levels deep. Anything else, `nil` and `NSNull` too, is an error, and so are in XML a string with control characters (XML 1.0,
/// section 2.2) and a date outside the years 1 to 9999.
public struct PropertyListEncoding: ParameterEncoding {
    /// The encoding as XML.
    public static var `default`: PropertyListEncoding { PropertyListEncoding() }
    /// The encoding as XML: the default.
    public static var xml: PropertyListEncoding { PropertyListEncoding(format: .xml) }
    /// The encoding in the binary format.
    public static var binary: PropertyListEncoding { PropertyListEncoding(format: .binary) }

    /// The format. Foundation does not write `openStep`: every encoding with it fails.
    public let format: PropertyListSerialization.PropertyListFormat
    /// The options for `PropertyListSerialization`, which has none so far.
    public let options: PropertyListSerialization.WriteOptions

    /// Makes an encoding; XML without options by default.
    public init(format: PropertyListSerialization.PropertyListFormat = .xml, options: PropertyListSerialization.WriteOptions = 0) {
        self.format = format
        self.options = options
    }

    /// The request with the parameters as a property list in its body.
    ///
    /// The content type is `application/x-plist` unless the request has one.
    ///
    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:)`` when the parameters hold what a property list can't,
    ///   ``CurlewError/urlRequestValidationFailed(reason:)`` for a request without a URL; what `urlRequest` throws.
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
        // Foundation on Linux traps when it is to write this one.
        guard format != .openStep else { throw .unencodable("Foundation does not write property lists in the format openStep.") }
        try ParameterTree(format: "a property list", acceptsLeaf: accepts).validate(parameters)
    }

    private func accepts(_ leaf: Any) -> Bool {
        switch leaf {
        // Foundation writes these two into XML, where no parser takes them.
        case let string as String where format == .xml: string.unicodeScalars.allSatisfy(\.isXMLCharacter)
        case let date as Date where format == .xml: datesOfXML.contains(date.timeIntervalSince1970)
        case let date as Date: date.timeIntervalSince1970.isFinite
        default: PropertyListSerialization.propertyList(leaf, isValidFor: format)
        }
    }

    /// The years 1 to 9999, in seconds since 1970.
    private var datesOfXML: Range<TimeInterval> { -62_135_596_800..<253_402_300_800 }
}

extension Unicode.Scalar {
    /// Whether the scalar may stand in XML (XML 1.0, section 2.2).
    fileprivate var isXMLCharacter: Bool {
        switch value {
        case 0x09, 0x0A, 0x0D: true
        case 0..<0x20, 0xFFFE, 0xFFFF: false
        default: true
        }
    }
}

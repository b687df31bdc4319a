// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// MARK: - Methods

extension HTTPMethod {
    /// Creates a method from one of swift-http-types. Both are tokens (RFC 9110, section 9.1), so that each is one of the other type.
    ///
    /// Needs `import CurlewHTTPTypes`.
    public init(_ method: HTTPRequest.Method) {
        self.init(known: method.rawValue)
    }
}

extension HTTPRequest.Method {
    /// Creates a method of swift-http-types.
    ///
    /// Needs `import CurlewHTTPTypes`.
    public init(_ method: HTTPMethod) {
        // Cannot fail: both types accept exactly the tokens of RFC 9110, section 5.6.2.
        guard let token = Self(rawValue: method.rawValue) else { preconditionFailure("An HTTPMethod is a token") }
        self = token
    }
}

// MARK: - Fields

extension HTTPHeaders {
    /// Creates a list of the fields of swift-http-types, in their order, with repeated names and the spelling of each name.
    ///
    /// Needs `import CurlewHTTPTypes`.
    ///
    /// Fields named `Cookie` become a single one, in the place of the first, joined by `"; "`: HTTP/1.1 allows only one (RFC 6265, section
    /// 5.4), while HTTP/2 allows to split it (RFC 9113, section 8.2.3). Values that are not UTF-8 are decoded as ISO 8859-1, as those of
    /// responses are. The indexing strategy is not kept: libcurl never indexes `Authorization` and short cookies over HTTP/2, and has no
    /// setting for other fields.
    public init(_ fields: HTTPFields) {
        self.init()
        for field in fields {
            if field.name == .cookie, let cookies = self["Cookie"] {
                update(HTTPHeader(name: first { $0.isNamed("Cookie") }?.name ?? field.name.rawName, value: "\(cookies); \(field.text)"))
            } else {
                append(name: field.name.rawName, value: field.text)
            }
        }
    }
}

extension HTTPFields {
    /// The most fields that `HTTPFields` holds, beyond which it traps.
    private static var largestCount: Int { Int(UInt16.max) - 1 }

    /// Creates the fields of swift-http-types, in their order, with repeated names and the spelling of each name.
    ///
    /// Needs `import CurlewHTTPTypes`.
    ///
    /// - Throws: ``CurlewError/urlRequestValidationFailed(reason:in:)`` for a name that is not a token, a value with control characters (RFC
    ///   9110, sections 5.1 and 5.5), or more than 65,534 fields.
    public init(_ headers: HTTPHeaders) throws(CurlewError) {
        self.init()
        guard headers.count <= Self.largestCount else {
            throw .urlRequestValidationFailed(reason: .invalidHeader(name: headers[Self.largestCount].name))
        }
        for header in headers {
            guard header.isValid, let name = HTTPField.Name(header.name) else {
                throw .urlRequestValidationFailed(reason: .invalidHeader(name: header.name))
            }
            append(HTTPField(name: name, value: header.value))
        }
    }

    /// The fields of a response, as far as `HTTPFields` holds them: those whose name is not a token are omitted, control characters in
    /// values become spaces.
    init(received headers: HTTPHeaders) {
        self.init()
        for header in headers.prefix(Self.largestCount) {
            guard let name = HTTPField.Name(header.name) else { continue }
            append(HTTPField(name: name, value: header.value))
        }
    }
}

extension HTTPField {
    /// The value, decoded as ISO 8859-1, which maps every byte, if it is not UTF-8.
    fileprivate var text: String {
        utf8Value ?? withUnsafeBytesOfValue { bytes in String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) })) }
    }

    /// The value; `nil` if it is not UTF-8.
    var utf8Value: String? {
        withUnsafeBytesOfValue { String(validating: $0, as: UTF8.self) }
    }
}

// MARK: - Responses

extension HTTPResponse {
    /// Creates a response from a received head.
    ///
    /// - Throws: ``CurlewError/transferFailed(_:)`` for a status of more than three digits, which only a ``Transport`` of the program's own can
    ///   make.
    init(_ head: ResponseHead, url: String) throws(CurlewError) {
        guard (0...999).contains(head.statusCode) else {
            let message = "The status \(head.statusCode) does not have three digits"
            throw .transferFailed(TransferFailure(kind: .protocolViolation, url: url, phase: .waiting, message: message))
        }
        self.init(
            status: Status(code: head.statusCode, reasonPhrase: head.reasonPhrase), headerFields: HTTPFields(received: head.headers))
    }
}
#endif

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Signs each exchange of a request, as the last step before it is sent.
///
/// A signature covers what is sent: the method, the URL, header fields, often the body and the time. An adapter can't make it, as it sees
/// none of what a session adds, and its result would be old after a wait, and wrong after a redirect. A signer is called for each exchange:
/// the first of an attempt, a redirect within the origin, an authenticated retry, a hedge, a retry, a validation by the cache; after
/// adapters, cookies, policies, instruments and the wait for a connection.
///
/// ```swift
/// struct KeySigner: ExchangeSigner {
///     let key: SigningKey
///     var identity: String { key.id }
///     func sign(_ exchange: SignableExchange) throws -> HTTPHeaders {
///         ["Authorization": "Key \(key.id):\(key.signature(of: "\(exchange.method) \(exchange.url) \(exchange.date)"))"]
///     }
/// }
/// ```
///
/// It signs for the origin of the request's URL alone: what follows a redirect to another origin is sent without a signature. Not called for
/// raw connections, handshakes of WebSockets, and what a `URLProtocol` class loads.
public protocol ExchangeSigner: Sendable {
    /// Whose signature it is, such as the identifier of a key; not sent.
    ///
    /// A stored response, or one that requests share, serves only requests with a signer of this identity: never unsigned ones, nor those of
    /// another signer, whether or not the signature is in `Authorization`. Read once before each exchange, on any thread, and given back in
    /// ``SignableExchange/identity``; the same text as long as the server would answer the same.
    var identity: String { get }

    /// Whether the signature needs ``SignableExchange/bodyDigest``; `false` by default. A body in memory or in a file is then read once more,
    /// before each exchange.
    var digestsBody: Bool { get }

    /// Obtains what signatures need, such as credentials in place of expired ones; does nothing by default.
    ///
    /// Awaited before each attempt, after the adapters, in the request's task, which is cancelled with the request. Requests call it side by
    /// side: a signer refreshes once for all of them. An error that it throws is one of an adapter: retriers are asked.
    func prepare() async throws

    /// Returns the header fields to set, in place of fields of their names.
    ///
    /// Called on the transport's thread: it must neither wait nor block. An error that it throws fails the attempt.
    func sign(_ exchange: SignableExchange) throws -> HTTPHeaders
}

extension ExchangeSigner {
    /// `false`: the body is not digested.
    public var digestsBody: Bool { false }
    /// Does nothing.
    public func prepare() async throws {}
}

/// What is about to be sent, for a signature.
public struct SignableExchange: Sendable {
    /// The method.
    public let method: HTTPMethod
    /// The absolute URL, as it is sent. Not redacted.
    public let url: String
    /// The fields that will be sent, with `Host`, and with `Content-Length` if the length of the body is known; without those with which
    /// libcurl frames a body (`Transfer-Encoding`), the `Accept: */*` that it adds to requests without `Accept`, and those of HTTP/2.
    public let headers: HTTPHeaders
    /// Whether there is a body.
    public let hasBody: Bool
    /// The SHA-256 digest of the body, of none if there is no body; `nil` for a body that is neither in memory nor a file, and for a signer
    /// that does not ask for it (``ExchangeSigner/digestsBody``).
    public let bodyDigest: [UInt8]?
    /// The ``ExchangeSigner/identity`` under which the response is going to be stored and shared. It may be an earlier one, if the signer has
    /// changed it since: the signature has to be of this identity, or none.
    public let identity: String
    /// The system's time.
    public let date: Date
}

/// The signer of a request, its identity, and the digest of the body that it signs.
package final class RequestSigning: Sendable {
    private let signer: any ExchangeSigner
    let identity: String
    private let digest: Result<[UInt8]?, any Error>

    /// May read a file, if the signer needs a digest of it.
    package init(_ signer: any ExchangeSigner, body: (any BodySource)?) {
        self.signer = signer
        identity = signer.identity
        digest = Result { signer.digestsBody ? try Self.digest(of: body) : nil }
    }

    private static func digest(of body: (any BodySource)?) throws -> [UInt8]? {
        switch body {
        case nil: SHA256.digest(of: Data())
        case let body as DataBody: SHA256.digest(of: body.data)
        case let body as FileBody: try body.digest()
        default: nil
        }
    }

    func isSameSigner(as other: RequestSigning?) -> Bool {
        other.map { identity.hasSameBytes(as: $0.identity) } ?? false
    }

    fileprivate func fields(for request: TransferRequest, _ headers: HTTPHeaders) throws -> HTTPHeaders {
        try signer.sign(
            SignableExchange(
                method: request.method, url: request.url, headers: headers, hasBody: request.body != nil, bodyDigest: try digest.get(),
                identity: identity, date: Date()))
    }
}

extension TransferRequest {
    /// The request with the fields of its signature; itself without a signer.
    ///
    /// - Throws: what the signer throws; what reading the body's file has thrown; `CurlewError.urlRequestValidationFailed` for an invalid field.
    package func signed() throws -> TransferRequest {
        guard let signing else { return self }
        var signed = self
        signed.signing = nil
        if prepared.options.decodesContent, headers["Accept-Encoding"] == nil {
            signed.headers.update(name: "Accept-Encoding", value: EasyHandle.acceptedCodings(withRange: headers["Range"] != nil))
        }
        // Set, so that what is signed is what is sent: libcurl leaves capitals as they are, and normalizes addresses.
        if headers["Host"] == nil, let target = RouteTarget(url: url) {
            let isDefault = target.port == (isSecure ? 443 : 80)
            let host = target.host.bracketed
            signed.headers.update(name: "Host", value: isDefault ? host : "\(host):\(target.port)")
        }
        for field in try signing.fields(for: signed, signed.fieldsOnWire) {
            guard field.isValid else { throw CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: field.name)) }
            signed.headers.update(field)
        }
        return signed
    }

    /// The fields with the length of the body, by which libcurl replaces the request's own.
    private var fieldsOnWire: HTTPHeaders {
        var fields = headers
        fields.remove(name: "Transfer-Encoding")
        fields.remove(name: "Content-Length")
        let length = body.map { $0.hasTrailers ? nil : $0.length ?? announcedLength } ?? (method.saysWhenEmpty ? 0 : nil)
        if let length { fields.update(name: "Content-Length", value: String(length)) }
        return fields
    }
}

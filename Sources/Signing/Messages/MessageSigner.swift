// SPDX-License-Identifier: Apache-2.0
import CurlewCrypto
import CurlewHTTP
import CurlewTransport

/// Signs the requests of a session, or single ones, by HTTP message signatures (RFC 9421).
///
/// ```swift
/// let key = try SigningKey(pem: pem, id: "client-7")
/// configuration.signer = MessageSigner(key)
/// ```
///
/// By default a signature covers method and URL, `Authorization` and `Content-Type` if they are sent, and the body by a `Content-Digest` that
/// is made for it. Each exchange has one of its own, with the time at which it is sent.
public struct MessageSigner: ExchangeSigner {
    /// The key.
    public let key: SigningKey
    private let distinction: String
    /// The label of the signature; `sig1` by default.
    public var label = "sig1"
    /// What each signature covers; method and URL by default.
    ///
    /// With `content-digest`, also the lack of a body is covered.
    public var components: [MessageComponent] = [.method, .targetURI]
    /// What each signature covers if the request has it, after ``components``; `Authorization` and `Content-Type` by default.
    public var optionalComponents: [MessageComponent] = ["authorization", "content-type"]
    /// Whether a body is covered, by a `Content-Digest` with SHA-256 that replaces the request's own; `true` by default.
    ///
    /// A body that is neither in memory nor a file is covered by the `Content-Digest` that the request has; without one the attempt fails
    /// with ``MessageSignatureError/bodyNotDigested``.
    public var coversBody = true
    /// Whether the time of the signature is sent; `true` by default.
    public var sendsCreated = true
    /// The time for which the signature is valid, in whole seconds; `nil`, the default, leaves it to the verifier.
    public var lifetime: Duration?
    /// Whether the algorithm is sent; `false` by default, as the verifier knows it of the key.
    public var sendsAlgorithm = false
    /// Whether a random text that is used once is sent; `false` by default.
    public var sendsNonce = false
    /// The application for which signatures are; `nil` by default.
    public var tag: String?

    /// Creates a signer.
    ///
    /// - Parameter key: a key whose ``SigningKey/id`` is sent as `keyid`, if it has one.
    public init(_ key: SigningKey) {
        self.key = key
        distinction = key.verificationKey.distinction
    }

    /// The label, the algorithm, and the identifier of the key, or a digest that distinguishes a key without one.
    public var identity: String { "\(label) \(key.algorithm.rawValue) \(distinction)" }

    /// Whether the body is covered.
    public var digestsBody: Bool { coversBody || components.contains("content-digest") }

    /// Returns `Signature-Input`, `Signature`, and `Content-Digest` if it is made.
    ///
    /// - Throws: ``MessageSignatureError``.
    public func sign(_ exchange: SignableExchange) throws -> HTTPHeaders {
        var message = SignableMessage(exchange)
        var fields = HTTPHeaders()
        var covered = components
        let requiresDigest = components.contains("content-digest")
        if requiresDigest || (coversBody && exchange.hasBody) {
            if let digest = exchange.bodyDigest {
                fields.contentDigest = ContentDigest(sha256: digest)
                message.headers.merge(fields)
            } else if message.headers["Content-Digest"] == nil {
                throw MessageSignatureError.bodyNotDigested
            }
            if !requiresDigest { covered.append("content-digest") }
        }
        covered += optionalComponents.filter { component in
            !covered.contains(component) && (try? message.value(of: component)) != nil
        }
        let input = SignatureInput(
            covered, created: sendsCreated ? exchange.date : nil, expires: lifetime.map { exchange.date.addingTimeInterval($0.seconds) },
            keyID: key.id, algorithm: sendsAlgorithm ? key.algorithm : nil, nonce: sendsNonce ? Self.nonce() : nil, tag: tag)
        for field in try message.signed(as: label, with: key, covering: input) { fields.append(field) }
        return fields
    }

    private static func nonce() -> String { Data((0..<18).map { _ in UInt8.random(in: .min ... .max) }).base64URLEncoded }
}

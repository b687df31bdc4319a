// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// Signs each exchange of a request that delivers a webhook, at the time at which it is sent.
///
/// ``StandardWebhook/signer(id:body:)`` and ``HMACWebhook/signer(body:)`` make it, for one request.
public struct WebhookSigner: ExchangeSigner {
    /// The identifier of the webhook or the name of the field, and a digest that distinguishes the key.
    public let identity: String
    /// `true`: what is sent is compared with what is signed.
    public var digestsBody: Bool { true }

    private let digest: [UInt8]
    private let fields: @Sendable (Date) throws -> HTTPHeaders

    init(identity: String, body: Data, fields: @escaping @Sendable (Date) throws -> HTTPHeaders) {
        self.identity = identity
        self.fields = fields
        digest = Array(ContentDigest(of: body).digests[.sha256] ?? Data())
    }

    /// Returns the fields of the scheme.
    ///
    /// - Throws: ``WebhookError``, also for a request with another body than that of the webhook, such as a compressed one.
    public func sign(_ exchange: SignableExchange) throws -> HTTPHeaders {
        guard exchange.bodyDigest == digest else { throw WebhookError.otherBody }
        return try fields(exchange.date)
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// Signs each exchange of a request, or of all requests of a session, for a service of AWS or a server with the interface of S3.
///
/// ```swift
/// configuration.signer = AWSSigner(AWSSignatureV4(service: "s3", region: "eu-central-1"))
/// ```
///
/// The credentials are asked for before the first request, and again five minutes before they expire: once, for all requests that need
/// them, without the deadline of any. Requests wait for the answer only in the last minute. If it is an error, the present ones are used
/// until they expire. A body in memory or in a file is signed by its digest; a stream is not, but by `uploadInChunks` of a session, which
/// signs it as it is read. As an interceptor, the signer corrects the clock. Thread-safe.
public final class AWSSigner: ExchangeSigner {
    private let signature: AWSSignatureV4
    private let shared: SharedCredentials
    let clock: Lock<Clock>
    /// What no other signer has, for the time without credentials.
    private let token = String.makeToken()

    /// Whether the digest of a body is signed; `true` by default. Without it, S3 accepts any body (``AWSSignatureV4/Payload/unsigned``).
    public let digestsBody: Bool

    /// Creates a signer.
    ///
    /// - Parameters:
    ///   - signature: service and region. `Accept-Encoding` and `Content-Length` are not signed in any case, as AWS's clients do.
    ///   - provider: finds the credentials; by default those of ``AWSCredentialsChain/init(_:)``.
    ///   - digestsBody: see ``digestsBody``.
    public init(
        _ signature: AWSSignatureV4, credentials provider: any AWSCredentialsProvider = AWSCredentialsChain(), digestsBody: Bool = true
    ) {
        var signature = signature
        signature.unsignedHeaders.formUnion(["Accept-Encoding", "Content-Length"])
        self.signature = signature
        clock = Lock(Clock(offset: signature.clockOffset))
        // What asks a service has a pause of its own.
        shared = SharedCredentials(pause: 0) { try await provider.credentials() }
        self.digestsBody = digestsBody
    }

    /// By how much the service's clock is ahead of this computer's, as far as is known: that of the signature at first, and that of a
    /// refusal's `Date` since one, if the signer is also the interceptor of the request.
    public var clockOffset: Duration { clock.withLock { $0.offset } }

    /// The identifier of the current key.
    public var identity: String { shared.known.first.map { Self.identity(of: $0) } ?? token }

    private static func identity(of credentials: AWSCredentials) -> String { "AWS4 \(credentials.accessKeyID)" }

    /// Obtains credentials, if there are none or they expire within a minute; begins to, if they expire within five.
    ///
    /// What the provider returns is used at least once, even if it has expired by this computer's clock, which may be wrong.
    ///
    /// - Throws: what the provider throws, unless the present credentials are still valid.
    public func prepare() async throws { _ = try await shared.credentials() }

    /// Returns the fields of the signature.
    ///
    /// - Throws: ``AWSSigningError``; ``AWSSigningError/credentialsReplaced`` also if ``prepare()`` was not called.
    public func sign(_ exchange: SignableExchange) throws -> HTTPHeaders {
        if let digest = exchange.bodyDigest { return try sign(exchange, as: .digest(digest.hexDigits)).fields }
        guard signature.sendsContentHash || !exchange.hasBody else { throw AWSSigningError.bodyNotDigested }
        return try sign(exchange, as: signature.sendsContentHash ? .unsigned : .empty).fields
    }

    /// Returns the fields of the signature, with what continues it.
    func sign(_ exchange: SignableExchange, as payload: AWSSignatureV4.Payload) throws -> (
        fields: HTTPHeaders, signature: AWSSignatureV4, credentials: AWSCredentials
    ) {
        // Another user's, if a refresh has found one: the response is stored for the one before.
        guard let credentials = shared.known.first(where: { Self.identity(of: $0).hasSameBytes(as: exchange.identity) })
        else { throw AWSSigningError.credentialsReplaced }
        var signature = signature
        signature.clockOffset = clockOffset
        let fields = try signature.sign(
            method: exchange.method.rawValue, url: exchange.url, headers: exchange.headers, payload: payload, credentials: credentials,
            at: exchange.date)
        return (fields, signature, credentials)
    }
}

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
/// them, without the deadline of any. A body in memory or in a file is signed by its digest. Thread-safe.
public final class AWSSigner: ExchangeSigner {
    private struct State {
        var credentials: AWSCredentials?
        /// Those before, with which exchanges may be under way that were begun before the refresh.
        var previous: AWSCredentials?
        var refresh: Task<AWSCredentials, any Error>?
    }

    /// How long before their expiration credentials are replaced, in seconds.
    private static let margin: TimeInterval = 300

    private let signature: AWSSignatureV4
    private let provider: any AWSCredentialsProvider
    private let state = Lock(State())
    /// What no other signer has, for the time without credentials.
    private let token = String.makeToken()

    /// Whether the digest of a body is signed; `true` by default. Without it, S3 accepts any body (``AWSSignatureV4/Payload/unsigned``).
    public let digestsBody: Bool

    /// Creates a signer.
    ///
    /// - Parameters:
    ///   - signature: service and region. `Accept-Encoding` and `Content-Length` are not signed in any case, as AWS's clients do.
    ///   - provider: finds the credentials; by default the environment, then the shared files.
    ///   - digestsBody: see ``digestsBody``.
    public init(
        _ signature: AWSSignatureV4, credentials provider: any AWSCredentialsProvider = AWSCredentialsChain(), digestsBody: Bool = true
    ) {
        var signature = signature
        signature.unsignedHeaders.formUnion(["Accept-Encoding", "Content-Length"])
        self.signature = signature
        self.provider = provider
        self.digestsBody = digestsBody
    }

    /// The identifier of the current key.
    public var identity: String { state.withLock { $0.credentials }.map { Self.identity(of: $0) } ?? token }

    private static func identity(of credentials: AWSCredentials) -> String { "AWS4 \(credentials.accessKeyID)" }

    /// Obtains credentials, if there are none or they expire soon.
    ///
    /// - Throws: what the provider throws, unless the present credentials are still valid.
    public func prepare() async throws {
        let now = Date()
        let refresh = state.withLock { state -> Task<AWSCredentials, any Error>? in
            if let credentials = state.credentials, credentials.expiration.map({ $0.timeIntervalSince(now) > Self.margin }) ?? true {
                return nil
            }
            if let refresh = state.refresh { return refresh }
            // Detached: it must not have the deadline and the other task-local values of the request that happens to be the first.
            let refresh = Task.detached { [provider] in try await provider.credentials() }
            state.refresh = refresh
            return refresh
        }
        guard let refresh else { return }
        let result = await refresh.result
        try state.withLock { state in
            let isFirst = state.refresh == refresh
            if isFirst { state.refresh = nil }
            switch result {
            case .success(let credentials): if isFirst { (state.previous, state.credentials) = (state.credentials, credentials) }
            case .failure(let error):
                if let expiration = state.credentials?.expiration, expiration > now { return }
                throw error
            }
        }
    }

    /// Returns the fields of the signature.
    ///
    /// - Throws: ``AWSSigningError``; ``AWSSigningError/credentialsReplaced`` also if ``prepare()`` was not called.
    public func sign(_ exchange: SignableExchange) throws -> HTTPHeaders {
        let known = state.withLock { [$0.credentials, $0.previous] }
        // Another user's, if a refresh has found one: the response is stored for the one before.
        guard let credentials = known.lazy.compactMap(\.self).first(where: { Self.identity(of: $0).hasSameBytes(as: exchange.identity) })
        else { throw AWSSigningError.credentialsReplaced }
        let payload: AWSSignatureV4.Payload
        if let digest = exchange.bodyDigest {
            payload = .digest(digest.hexDigits)
        } else if signature.sendsContentHash {
            payload = .unsigned
        } else {
            guard !exchange.hasBody else { throw AWSSigningError.bodyNotDigested }
            payload = .empty
        }
        return try signature.sign(
            method: exchange.method.rawValue, url: exchange.url, headers: exchange.headers, payload: payload, credentials: credentials,
            at: exchange.date)
    }
}

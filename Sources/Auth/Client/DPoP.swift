// SPDX-License-Identifier: Apache-2.0
public import CurlewCore
import CurlewCrypto
import CurlewEncoding
public import CurlewHTTP
public import CurlewSigning
public import CurlewTransport

/// Binds tokens to a key, of which each exchange has a proof (RFC 9449): a token that is stolen is of no use without it.
///
/// ```swift
/// let dpop = try DPoP(key: .generate(.ecdsaP256))
/// let client = OAuthClient(id: "app", server: server, dpop: dpop)
/// configuration.signer = dpop
/// configuration.instruments.append(dpop)
/// manager.interceptor = Interceptor(interceptors: [dpop, AuthenticationInterceptor(authenticator: OAuthAuthenticator(client))])
/// ```
///
/// The signer proves each attempt and redirect, the instrument receives the nonces that a server sends (`DPoP-Nonce`), and the interceptor
/// retries a request that was refused for want of one (`use_dpop_nonce`), which needs a validation as an ``AuthenticationInterceptor`` does.
/// Tokens in a store are of use with the same key only. Thread-safe.
public final class DPoP: ExchangeSigner, RequestInterceptor, ExchangeInstrument {
    /// The key's thumbprint by SHA-256 (RFC 7638), by which servers know it.
    public let thumbprint: String
    private let key: SigningKey
    private let header: [String: JSONValue]
    /// The newest nonce of each origin, and of authorization servers.
    private let nonces = Lock<[HTTPOrigin: String]>([:])

    /// Creates proofs by a private key: of Ed25519, or ECDSA on P-256, which all servers know.
    ///
    /// - Throws: ``SigningKeyError``, also for a secret.
    public init(key: SigningKey) throws {
        let verificationKey = key.verificationKey
        thumbprint = try verificationKey.thumbprint()
        self.key = key
        let jwk = try JSONDecoder().decode(JSONValue.self, from: Data(try verificationKey.jwk().utf8))
        header = ["typ": .string("dpop+jwt"), "jwk": jwk]
    }

    // MARK: ExchangeSigner

    /// The key's thumbprint.
    public var identity: String { "DPoP \(thumbprint)" }

    /// Returns a proof, if the request has a token that needs one.
    public func sign(_ exchange: SignableExchange) throws -> HTTPHeaders {
        let scheme = "DPoP "
        guard let authorization = exchange.headers["Authorization"],
            authorization.prefixScalars(while: { $0 != " " }).equalsIgnoringASCIICase("DPoP")
        else { return [:] }
        return try proof(of: exchange, token: String(authorization.dropFirstScalars(scheme.utf8.count)))
    }

    fileprivate func proof(of exchange: SignableExchange, token: String?) throws -> HTTPHeaders {
        var claims: [String: JSONValue] = [
            "jti": .string(CodeVerifier.randomText()), "htm": .string(exchange.method.rawValue),
            "htu": .string(Self.target(of: exchange.url)),
            "iat": .integer(Int(exchange.date.timeIntervalSince1970)),
        ]
        claims["ath"] = token.map { .string(Data(SHA256.digest(of: $0.utf8)).base64URLEncoded) }
        claims["nonce"] = HTTPOrigin(url: exchange.url).flatMap { origin in nonces.withLock { $0[origin] } }.map { .string($0) }
        return ["DPoP": try JSONWebToken.signed(claims, by: key, header: header)]
    }

    /// The URL without user, query and fragment (section 4.2).
    private static func target(of url: String) -> String { String(url.prefixScalars { $0 != "?" && $0 != "#" }).droppingUserInfo }

    // MARK: RequestInterceptor

    /// Retries a request that was refused because its proof has no nonce, or an old one.
    public func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        guard let response = request.response, response.statusCode == 401, request.retryCount < 3,
            let url = response.url?.absoluteString,
            let nonce = response.value(forHTTPHeaderField: "DPoP-Nonce"),
            AuthenticationChallenge.challenges(in: [response.value(forHTTPHeaderField: "WWW-Authenticate") ?? ""]).contains(where: {
                $0.scheme.hasSameBytes(as: "dpop") && $0.parameters["error"]?.hasSameBytes(as: "use_dpop_nonce") == true
            })
        else { return completion(false, 0) }
        learn(nonce, from: url)
        completion(true, 0)
    }

    // MARK: ExchangeInstrument

    /// Observes exchanges with a token that needs proofs.
    public func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
        exchange.headers["Authorization"]?.prefixScalars { $0 != " " }.equalsIgnoringASCIICase("DPoP") == true
            ? NonceObservation(dpop: self, url: exchange.url) : nil
    }

    private final class NonceObservation: ExchangeObservation {
        private let dpop: DPoP
        private let url: String

        init(dpop: DPoP, url: String) { (self.dpop, self.url) = (dpop, url) }

        func didReceive(_ head: ResponseHead) { dpop.learn(head.headers["DPoP-Nonce"], from: url) }
        func didEnd(_ completion: ExchangeCompletion) {}
    }

    /// Keeps a server's nonce; returns whether there is one.
    @discardableResult
    func learn(_ nonce: String?, from url: String) -> Bool {
        guard let nonce, nonce.utf8.count <= 1024, let origin = HTTPOrigin(url: url) else { return false }
        return nonces.withLock { nonces in
            // Far more than a program has servers.
            if nonces.count >= 1000, nonces[origin] == nil { nonces = [:] }
            nonces[origin] = nonce
            return true
        }
    }
}

/// Signs requests for tokens, which have no access token.
struct TokenRequestSigner: ExchangeSigner {
    let dpop: DPoP

    var identity: String { dpop.identity }
    func sign(_ exchange: SignableExchange) throws -> HTTPHeaders { try dpop.proof(of: exchange, token: nil) }
}

extension DPoP: CustomStringConvertible, CustomReflectable {
    /// The key's thumbprint.
    public var description: String { "DPoP(\(thumbprint))" }
    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["thumbprint": thumbprint]) }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSigning

// snippet: tool
func makeTool(
    _ client: OAuthClient, keepingTokensIn file: URL, open: @escaping @Sendable (String) async throws -> Void
) async throws -> SessionManager {
    let authenticator = OAuthAuthenticator(client, store: .file(file))
    if try await authenticator.store.credential() == nil {
        try await authenticator.signIn(with: client.signIn(scope: ["notes"], open: open))
    }
    return SessionManager(interceptor: AuthenticationInterceptor(authenticator: authenticator))
}
// end

// snippet: device
func signIn(_ client: OAuthClient, show: (String) -> Void) async throws -> OAuthTokens {
    let device = try await client.deviceAuthorization(scope: ["notes"])
    show("Enter \(device.userCode) at \(device.verificationURL)")
    return try await client.tokens(for: device)
}
// end

// snippet: server
func begin(_ client: OAuthClient) async throws -> OAuthAuthorization {
    try await client.authorization(redirectingTo: "https://app.example.org/callback", scope: ["openid", "notes"])
}

func finish(_ authorization: OAuthAuthorization, callback: String) async throws -> OAuthTokens {
    try await authorization.tokens(from: callback)
}
// end

// snippet: errors
func notes(_ url: String, with manager: SessionManager, signIn: () async throws -> Void) async throws -> Data {
    do {
        return try await manager.request(url).validate().serializingData().value
    } catch OAuthError.signInRequired {
        try await signIn()
        return try await manager.request(url).validate().serializingData().value
    }
}
// end

// snippet: dpop
func makeBoundManager(id: String, issuer: String, key: SigningKey) throws -> SessionManager {
    let dpop = try DPoP(key: key)
    let client = OAuthClient(id: id, authentication: .key(key), server: .issuer(issuer), dpop: dpop)
    var configuration = SessionConfiguration()
    configuration.signer = dpop
    configuration.instruments.append(dpop)
    let authentication = AuthenticationInterceptor(authenticator: OAuthAuthenticator(client, renewingBy: .clientCredentials()))
    return SessionManager(configuration: configuration, interceptor: Interceptor(interceptors: [dpop, authentication]))
}
// end

// snippet: resource
func makeClient(of resource: String, challenge: HTTPHeaders, name: String) async throws -> (OAuthClient, OAuthResource) {
    let metadata = try await OAuthResource.metadata(of: resource, challenge: challenge)
    let server = OAuthServer.issuer(metadata.authorizationServers?.first ?? "")
    let registered = try await OAuthClient.register(OAuthRegistration(name: name), with: server)
    return (OAuthClient(id: registered.id, authentication: registered.authentication, server: server), metadata)
}
// end

// snippet: static
func makeSimple(key: String, token: String) -> [SessionManager] {
    [
        SessionManager(interceptor: .apiKey(key, for: ["https://api.example.org"])),
        SessionManager(interceptor: .bearer(token)),
        SessionManager(interceptor: .basic(user: "me", password: token)),
    ]
}
// end

// SPDX-License-Identifier: Apache-2.0
// snippet: ten
import CurlewAuth
import CurlewCore

func makeReports(id: String, secret: String, issuer: String) -> SessionManager {
    let client = OAuthClient(id: id, authentication: .secret(secret), server: .issuer(issuer))
    let authenticator = OAuthAuthenticator(client, renewingBy: .clientCredentials(scope: ["reports:read"]))
    return SessionManager(interceptor: AuthenticationInterceptor(authenticator: authenticator))
}
// end

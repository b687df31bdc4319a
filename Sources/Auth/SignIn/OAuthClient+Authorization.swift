// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

extension OAuthClient {
    /// Makes an authorization request for the user's browser, with PKCE and `state`, and with `nonce` if the scope has `openid`.
    ///
    /// - Parameters:
    ///   - redirectURL: where the browser is redirected with the answer; registered with the server.
    ///   - scope: the scope; empty for the server's default.
    ///   - resources: the URLs of the resources for which access tokens are to be (RFC 8707).
    ///   - isPushed: whether the request is sent ahead (RFC 9126), so that the browser has only a reference to it; by default if the server
    ///     requires it.
    ///   - parameters: further ones, such as `prompt` or `login_hint`.
    /// - Throws: ``OAuthError``; ``CurlewError`` for a failed transfer.
    public func authorization(
        redirectingTo redirectURL: String, scope: [String] = [], resources: [String] = [], isPushed: Bool? = nil,
        parameters: [String: String] = [:]
    ) async throws -> OAuthAuthorization {
        let metadata = try await metadata()
        let (verifier, state) = (CodeVerifier(), CodeVerifier.randomText())
        var form: OAuthForm = [
            "response_type": "code", "client_id": id, "redirect_uri": redirectURL, "state": state,
            "code_challenge": verifier.challenge, "code_challenge_method": "S256", "dpop_jkt": dpop?.thumbprint,
        ]
        form.append(scope: scope, resources: resources)
        for (name, value) in parameters.sorted(by: { $0.key < $1.key }) where form[name] == nil { form[name] = value }
        let isOpenID = form["scope"]?.splitScalars(separator: " ").contains { String($0).hasSameBytes(as: "openid") } == true
        if isOpenID, form["nonce"] == nil { form["nonce"] = CodeVerifier.randomText() }
        let nonce = form["nonce"]
        if isPushed ?? metadata.requiresPushedAuthorization ?? false {
            form = ["client_id": id, "request_uri": try await push(form)]
        }
        let endpoint = try metadata.url(of: .authorization)
        let separator = endpoint.unicodeScalars.contains("?") ? "&" : "?"
        return OAuthAuthorization(
            url: endpoint + separator + form.encoded, redirectURL: redirectURL, state: state, client: self, metadata: metadata,
            verifier: verifier, nonce: nonce, resources: resources)
    }

    /// Sends an authorization request ahead; returns the reference to it (RFC 9126, section 2).
    private func push(_ form: OAuthForm) async throws -> String {
        struct Reference: Decodable {
            let request_uri: String
        }
        let response = try await post(form, to: .pushedAuthorization)
        guard response.status == 201 || response.status == 200 else { throw response.error }
        guard let reference = try? JSONDecoder().decode(Reference.self, from: response.body) else {
            throw OAuthError.unexpectedResponse(statusCode: response.status, reason: "the body has no reference to the request")
        }
        return reference.request_uri
    }

    /// Signs a user of this computer in: opens the server's page in a browser, and receives the answer on 127.0.0.1 (RFC 8252).
    ///
    /// ```swift
    /// let tokens = try await client.signIn(scope: ["openid"]) { url in print("Open \(url)") }
    /// ```
    ///
    /// - Parameters:
    ///   - scope: the scope; empty for the server's default.
    ///   - resources: the URLs of the resources for which access tokens are to be (RFC 8707).
    ///   - path: the path of the redirect, as it is registered with the server; its port is any.
    ///   - parameters: further ones of the request, such as `prompt` or `login_hint`.
    ///   - timeout: how long the user may take, from the call of `open` on; 5 minutes by default.
    ///   - page: what the browser shows at the end, HTML of at most 16 KiB.
    ///   - open: opens a URL in the user's browser, in a task of its own. It may wait for the browser: when the answer is there, or the time
    ///     is over, the task is cancelled and not waited for.
    /// - Throws: as ``OAuthAuthorization/tokens(from:)``; ``OAuthError/timedOut(after:)``; what `open` throws before the answer.
    public func signIn(
        scope: [String] = [], resources: [String] = [], path: String = "/callback", parameters: [String: String] = [:],
        timeout: Duration = .seconds(300), page: String = "<!doctype html><title>Signed in</title><p>You can close this page.",
        open: @escaping @Sendable (_ url: String) async throws -> Void
    ) async throws -> OAuthTokens {
        let listener: RedirectListener
        do throws(SystemError) {
            listener = try RedirectListener()
        } catch {
            throw POSIXError(POSIXErrorCode(rawValue: error.code) ?? .EIO)
        }
        let authorization = try await authorization(
            redirectingTo: "http://127.0.0.1:\(listener.port)\(path)", scope: scope, resources: resources, parameters: parameters)
        // Other programs of this computer may send requests, too, which end nothing.
        let (prefix, state) = (path + "?", authorization.state)
        let listening = Task {
            try await listener.target(within: timeout, page: String(page.unicodeScalars.prefix(16 << 10))) { target in
                guard target.hasBytePrefix(prefix), let items = try? OAuthAuthorization.items(of: target) else { return false }
                return items["state"]?.hasSameBytes(as: state) == true
            }
        }
        let failure = Lock<(any Error)?>(nil)
        let opening = Task {
            do {
                try await open(authorization.url)
            } catch {
                failure.withLock { $0 = error }
                listening.cancel()
            }
        }
        defer { opening.cancel() }
        let target: String
        do {
            target = try await withTaskCancellationHandler {
                try await listening.value
            } onCancel: {
                listening.cancel()
            }
        } catch {
            throw failure.withLock { $0 } ?? error
        }
        opening.cancel()
        return try await authorization.tokens(from: target)
    }
}

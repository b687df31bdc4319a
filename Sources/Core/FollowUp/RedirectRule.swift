// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Follows redirects as the session's ``RedirectPolicy`` and the delegate's closures decide (RFC 9110, section 15.4).
///
/// Redirects are followed here and not by libcurl, because libcurl knows neither the rules for header fields (``RedirectPolicy``) nor how a
/// body is rewound or renewed, and has no way to ask a closure.
enum RedirectRule: ResponseRule {
    static func decision(on head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> RuleResult {
        guard head.isRedirect else { return .pass }
        guard !driver.asksAboutRedirects else { return .ask }
        guard let transfer = task.currentTransfer else { return .pass }
        do {
            let next = try driver.next(after: transfer, head, of: task)
            return next.map { .decide(.followUp(FollowUp(request: $0.withSocket(of: task), kind: .redirect))) } ?? .pass
        } catch {
            return .decide(.fail(error))
        }
    }

    static func decide(_ response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision?) -> Void) {
        do {
            let next = try response.driver.next(after: response.transfer, response.head, of: response.task, rewindsBody: false)
            guard let next else { return done(nil) }
            ask(response, about: next, done)
        } catch {
            done(.fail(error))
        }
    }

    private static func ask(
        _ response: PendingResponse, about next: TransferRequest, _ done: @escaping @Sendable (ResponseDecision?) -> Void
    ) {
        guard let closure = response.closures.taskWillPerformHTTPRedirection, let foundationResponse = response.response,
            let proposed = next.urlRequest
        else { return follow(next, from: response, done) }
        let chosen = response.wait { follow($0, insteadOf: proposed, next, from: response, done) }
        response.driver.inContext { closure(response.session, response.task, foundationResponse, proposed) { chosen($0) } }
    }

    private static func follow(
        _ chosen: URLRequest?, insteadOf proposed: URLRequest, _ next: TransferRequest, from response: PendingResponse,
        _ done: @escaping @Sendable (ResponseDecision?) -> Void
    ) {
        // Without a request the redirect is the response.
        guard let chosen else { return done(nil) }
        do {
            let next =
                chosen.isUnchanged(from: proposed)
                ? next : try next.changed(to: chosen, from: proposed, under: response.driver.redirects, in: response.session)
            follow(next, from: response, done)
        } catch {
            done(.fail(error))
        }
    }

    /// Follows the redirect, if its body, if any, can be sent again.
    private static func follow(
        _ next: TransferRequest, from response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision?) -> Void
    ) {
        response.renewBody(of: next) { isRenewed in
            guard isRenewed else { return done(.fail(CurlewError.redirectFailed(reason: .bodyNotRepeatable))) }
            done(.followUp(FollowUp(request: next.withSocket(of: response.task), kind: .redirect)))
        }
    }
}

extension RequestDriver {
    /// Whether closures decide about redirects, or about bodies that these send again.
    fileprivate var asksAboutRedirects: Bool {
        closures { $0.taskWillPerformHTTPRedirection != nil || $0.taskNeedNewBodyStream != nil }
    }

    /// The request that follows a redirect by the policy or, for a redirect by a class, the request that the class wants; `nil` if the
    /// response is the result.
    fileprivate func next(
        after transfer: TransferRequest, _ head: ResponseHead, of task: SessionTask, rewindsBody: Bool = true
    ) throws -> TransferRequest? {
        guard let wanted = state.withLock({ $0.attempt.protocolResponse })?.redirect else {
            return try redirects.next(
                after: transfer, head, redirectCount: task.redirectCount, rewindsBody: rewindsBody, hsts: session.hsts)
        }
        guard redirects.limit > 0 else { return nil }
        guard task.redirectCount < redirects.limit else { throw CurlewError.redirectFailed(reason: .tooMany(limit: redirects.limit)) }
        // Compared with a request without a body: the class decides about that, too.
        var current = transfer
        current.body = nil
        guard let url = wanted.url, let proposed = current.urlRequest else {
            throw CurlewError.redirectFailed(reason: .invalidLocation(""))
        }
        if HTTPOrigin(url: transfer.url) != HTTPOrigin(url) { redirects.removeCredentials(from: &current.headers) }
        return try current.changed(to: wanted, from: proposed, under: redirects, in: session)
    }
}

extension TransferRequest {
    /// Returns the transfer over the Unix domain socket with which its task began, if it goes to the same origin, otherwise over TCP.
    fileprivate func withSocket(of task: SessionTask) -> TransferRequest {
        guard let original = task.originalTransfer, let socket = original.unixSocket else { return self }
        var result = self
        let allowed = HTTPOrigin(url: original.url) == HTTPOrigin(url: url) ? socket : nil
        if unixSocket != allowed { result.unixSocket = allowed }
        return result
    }

    /// Returns the transfer with the changes of a redirect closure. Its body is kept if ``keepsBody(of:)`` is `true`.
    fileprivate func changed(
        to chosen: URLRequest, from proposed: URLRequest, under policy: RedirectPolicy, in session: Session
    ) throws -> TransferRequest {
        var chosen = chosen
        let keepsBody = chosen.keepsBody(of: proposed)
        // Bytes that are left from the proposed request; a stream or bytes of the closure's own stay. Foundation on Linux traps when a
        // copied request without a URL is changed; such a request fails below.
        if !keepsBody, body != nil, chosen.url != nil, chosen.hasBody(of: proposed) { chosen.httpBody = nil }
        var result = try TransferRequest(
            chosen, given: GivenHeaders(headers, in: proposed), body: keepsBody ? body : nil, in: session)
        if !keepsBody, body != nil { result.removeContentHeaders(leftFrom: proposed, in: chosen) }
        removeSessionHeaders(from: &result, missingIn: chosen, under: policy, in: session)
        let interface = result.options.interface
        result.options = options
        result.options.interface = interface ?? options.interface
        result.mayPause = mayPause
        result.expectsLargeBody = expectsLargeBody
        return result
    }

    /// Removes fields of the session that were added to the closure's request although the redirect is sent without them: those that the
    /// policy has removed, and credentials if the closure chose another origin.
    private func removeSessionHeaders(
        from result: inout TransferRequest, missingIn chosen: URLRequest, under policy: RedirectPolicy, in session: Session
    ) {
        let isOtherOrigin = HTTPOrigin(url: url) != HTTPOrigin(url: result.url)
        for header in session.configuration.headers where chosen.value(forHTTPHeaderField: header.name) == nil {
            if headers[header.name] == nil || isOtherOrigin && policy.isCredential(header) { result.headers.remove(name: header.name) }
        }
    }

    /// Removes the fields that describe a body that is no longer sent: all of them if there is no body now, the length if there is another.
    private mutating func removeContentHeaders(leftFrom proposed: URLRequest, in chosen: URLRequest) {
        for name in body == nil ? RedirectPolicy.contentHeaders : ["Content-Length"]
        where chosen.value(forHTTPHeaderField: name) == proposed.value(forHTTPHeaderField: name) {
            headers.remove(name: name)
        }
    }
}

extension URLRequest {
    /// Whether a redirect closure's request is followed with the body of the proposed one.
    ///
    /// Bytes are a part of the request that the closure returned, and are kept except for methods without a body. A file or a stream is
    /// not: the closure can't have seen it, so it is kept only with the proposed method and origin.
    fileprivate func keepsBody(of proposed: URLRequest) -> Bool {
        guard hasBody(of: proposed) else { return false }
        let keepsMethod = httpMethod == proposed.httpMethod
        if proposed.httpBody != nil { return keepsMethod || !["GET", "HEAD", "TRACE"].contains((httpMethod ?? "GET").uppercased()) }
        return keepsMethod && url.flatMap { HTTPOrigin($0) } == proposed.url.flatMap { HTTPOrigin($0) }
    }

    /// Whether a closure returned the request as it was proposed. Foundation on Linux compares neither bodies nor header fields.
    fileprivate func isUnchanged(from proposed: URLRequest) -> Bool {
        self == proposed && allHTTPHeaderFields == proposed.allHTTPHeaderFields && hasBody(of: proposed)
    }

    /// Whether the body is the proposed one: the same bytes, or none that the closure can see.
    fileprivate func hasBody(of proposed: URLRequest) -> Bool {
        httpBodyStream == nil && httpBody == proposed.httpBody
    }
}

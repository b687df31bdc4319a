// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

// What a response means for its task is decided at its head: at once where nobody has to be asked, else on the session's queue, while the
// transfer waits.

extension SessionDelegate {
    /// Tells the session's monitors of a response.
    func tellMonitors(of head: ResponseHead, _ task: SessionTask) {
        guard let request = self[task], let transfer = task.currentTransfer else { return }
        request.session.tellMonitors { monitor in
            if let response = ResponseContext(transfer: transfer, head: head).response { monitor.request(request, didReceive: response) }
        }
    }

    /// Whether there is anything to decide about a response. On the transport's thread, for every response.
    func mustJudge(_ head: ResponseHead, in session: Session) -> Bool {
        if head.isRedirect || head.statusCode == 401 { return true }
        if session.cookies != nil, head.contains("set-cookie") { return true }
        return closures.withLock { $0.dataTaskDidReceiveResponse != nil }
    }

    /// The verdict, if neither code of users nor anything that blocks has a part in it; on the transport's thread.
    func judgeAtOnce(_ head: ResponseHead, of task: SessionTask, in session: Session) -> ResponseVerdict? {
        guard head.isRedirect, session.cookies == nil || !head.contains("set-cookie"), !decidesAboutResponses else { return nil }
        guard let transfer = task.currentTransfer else { return .accept }
        return redirect(transfer, head, of: task, in: session).verdict
    }

    private var decidesAboutResponses: Bool {
        closures.withLock { closures in
            closures.dataTaskDidReceiveResponse != nil || closures.taskWillPerformHTTPRedirection != nil
                || closures.taskNeedNewBodyStream != nil
        }
    }

    /// Decides on the session's queue; `decided` is called there, once at the most: never when somebody who was asked never answers.
    ///
    /// - Parameter isAwaited: whether the decision is still pending. A later answer has no effect.
    func judge(
        _ head: ResponseHead, of task: SessionTask, in session: Session, isAwaited: @escaping @Sendable () -> Bool,
        decided: @escaping @Sendable (ResponseVerdict) -> Void
    ) {
        session.queue.async {
            guard let transfer = task.currentTransfer, let request = self[task] else { return decided(.accept) }
            let judgement = Judgement(
                head: head, transfer: transfer, task: task, request: request, session: session, delegate: self, isAwaited: isAwaited,
                decided: decided)
            session.cookies?.store(head, of: transfer)
            request.delegate.noteAuthentication(head, from: transfer.url)
            judgement.followRedirect()
        }
    }

    fileprivate enum RedirectProposal {
        case none
        case follow(TransferRequest)
        case refuse(CurlewError)

        var verdict: ResponseVerdict {
            switch self {
            case .none: .accept
            case .follow(let request): .goOn(NextTransfer(request: request, reason: .redirect))
            case .refuse(let error): .refuse(error)
            }
        }
    }

    fileprivate func redirect(
        _ transfer: TransferRequest, _ head: ResponseHead, of task: SessionTask, in session: Session, rewindsBody: Bool = true
    ) -> RedirectProposal {
        do throws(CurlewError) {
            let next = try session.configuration.redirects.next(
                after: transfer, head, hops: task.redirectCount, rewindsBody: rewindsBody)
            return next.map { .follow($0) } ?? .none
        } catch {
            return .refuse(error)
        }
    }
}

/// Goes through what there is to decide about one response, in this order: redirect, challenge, disposition. On the session's queue.
private struct Judgement: Sendable {
    let head: ResponseHead
    let transfer: TransferRequest
    let task: SessionTask
    let request: Request
    let session: Session
    let delegate: SessionDelegate
    let isAwaited: @Sendable () -> Bool
    let decided: @Sendable (ResponseVerdict) -> Void

    /// The response as Foundation's users know it.
    private var response: HTTPURLResponse? { ResponseContext(transfer: transfer, head: head).response }

    // MARK: Redirect

    func followRedirect() {
        let proposal = delegate.redirect(transfer, head, of: task, in: session, rewindsBody: false)
        switch proposal {
        case .none: answerChallenge()
        case .refuse: decided(proposal.verdict)
        case .follow(let next): ask(about: next)
        }
    }

    private func ask(about next: TransferRequest) {
        guard let closure = delegate.closures.withLock({ $0.taskWillPerformHTTPRedirection }), let response,
            let proposed = next.urlRequest
        else { return follow(next) }
        session.ask({ closure(session, task, response, proposed, $0) }) { chosen in
            if isAwaited() { follow(chosen, insteadOf: proposed, next) }
        }
    }

    private func follow(_ chosen: URLRequest?, insteadOf proposed: URLRequest, _ next: TransferRequest) {
        // Nobody wants to go there: the redirect is the response.
        guard let chosen else { return dispose() }
        do {
            follow(chosen.isUnchanged(from: proposed) ? next : try next.changed(to: chosen, from: proposed, in: session))
        } catch {
            decided(.refuse(error))
        }
    }

    /// Follows the redirect, if what is left of the body can be sent again.
    private func follow(_ next: TransferRequest) {
        delegate.renewBody(of: next, task, in: session) { isRenewed in
            guard isRenewed else { return decided(.refuse(CurlewError.redirectFailed(reason: .bodyNotRepeatable))) }
            decided(.goOn(NextTransfer(request: next, reason: .redirect)))
        }
    }

    // MARK: Challenge

    private func answerChallenge() {
        let handling = ChallengeHandling(head, to: transfer, of: task, request, isAwaited: isAwaited) { outcome in
            switch outcome {
            case .deliver: dispose()
            case .repetition: decided(.goOn(NextTransfer(request: transfer, reason: .repetition)))
            case .cancel: decided(.refuse(CurlewError.cancelled))
            }
        }
        guard let handling else { return dispose() }
        handling.begin()
    }

    // MARK: Disposition

    private func dispose() {
        guard let closure = delegate.closures.withLock({ $0.dataTaskDidReceiveResponse }), request is DataRequest, let response else {
            return decided(.accept)
        }
        session.ask({ closure(session, task, response, $0) }) { disposition in
            if isAwaited() { apply(disposition) }
        }
    }

    private func apply(_ disposition: URLSession.ResponseDisposition) {
        switch disposition {
        case .cancel: decided(.refuse(CurlewError.cancelled))
        case URLSession.ResponseDisposition.download: decided(.becomeDownload)
        default: decided(.accept)
        }
    }
}

extension TransferRequest {
    /// The transfer with what a redirect closure has changed in it. Its body follows where ``keepsBody(of:in:)`` says so.
    fileprivate func changed(to chosen: URLRequest, from proposed: URLRequest, in session: Session) throws -> TransferRequest {
        var chosen = chosen
        let keepsBody = chosen.keepsBody(of: proposed)
        // Bytes that are left from the proposed request; a stream or bytes of the closure's own stay. Foundation on Linux traps when a
        // copied request without a URL is changed; such a request fails below.
        if !keepsBody, body != nil, chosen.url != nil, chosen.hasBody(of: proposed) { chosen.httpBody = nil }
        var result = try TransferRequest(
            chosen, given: GivenHeaders(headers, in: proposed), body: keepsBody ? body : nil, in: session)
        if !keepsBody, body != nil { result.removeContentHeaders(leftFrom: proposed, in: chosen) }
        removeSessionHeaders(from: &result, missingIn: chosen, in: session)
        let interface = result.options.interface
        result.options = options
        result.options.interface = interface ?? options.interface
        result.mayPause = mayPause
        result.expectsLargeBody = expectsLargeBody
        return result
    }

    /// Removes fields of the session that were added to the closure's request though the redirect goes without them: those that the policy
    /// has removed, and credentials where the closure chose another origin.
    private func removeSessionHeaders(from result: inout TransferRequest, missingIn chosen: URLRequest, in session: Session) {
        let isElsewhere = Origin(url) != Origin(result.url)
        let policy = session.configuration.redirects
        for header in session.configuration.headers where chosen.value(forHTTPHeaderField: header.name) == nil {
            let isCredential = policy.credentialHeaders.contains { header.isNamed($0) }
            if headers[header.name] == nil || isElsewhere && isCredential { result.headers.remove(name: header.name) }
        }
    }

    /// Removes what describes the body that is not sent any more: all of it where there is no body now, the length where there is another.
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
    /// Bytes are a part of the request that the closure returned, and follow it, but for methods that have no use for a body. A file or a
    /// stream is not: the closure can't have seen it, and it follows only with the method and to the origin that were proposed.
    fileprivate func keepsBody(of proposed: URLRequest) -> Bool {
        guard hasBody(of: proposed) else { return false }
        let keepsMethod = httpMethod == proposed.httpMethod
        if proposed.httpBody != nil { return keepsMethod || !["GET", "HEAD", "TRACE"].contains((httpMethod ?? "GET").uppercased()) }
        return keepsMethod && url.flatMap { Origin($0) } == proposed.url.flatMap { Origin($0) }
    }

    /// Whether a closure returned the request as it was proposed. Foundation on Linux compares neither bodies nor header fields.
    fileprivate func isUnchanged(from proposed: URLRequest) -> Bool {
        self == proposed && allHTTPHeaderFields == proposed.allHTTPHeaderFields && hasBody(of: proposed)
    }

    /// Whether the body was left as it was proposed: the same bytes, or none that can be seen.
    fileprivate func hasBody(of proposed: URLRequest) -> Bool {
        httpBodyStream == nil && httpBody == proposed.httpBody
    }
}

extension URLSession.ResponseDisposition {
    /// `becomeDownload`, which Foundation on Linux has deprecated because its own sessions can't do it.
    static let download = URLSession.ResponseDisposition(rawValue: 2)
}

// MARK: - Bodies

extension SessionDelegate {
    /// Makes the body of a transfer ready for being sent again: the request's own stream by one that the closure gives. On the session's
    /// queue, where `done` is called, too.
    func renewBody(of transfer: TransferRequest, _ task: SessionTask, in session: Session, done: @escaping @Sendable (Bool) -> Void) {
        guard let body = transfer.body, !body.rewind() else { return done(true) }
        // A stream of an adapter or a redirect closure took the upload's place: the closure would give the upload's bytes for it.
        guard let body = body as? StreamBody, body === self[task]?.streamBody else { return done(false) }
        renew(body, for: task, in: session, done: done)
    }

    /// Whether users give a request's stream anew.
    func mayRenewBody(of request: Request) -> Bool {
        request.streamBody != nil
            && closures.withLock { $0.taskNeedNewBodyStream != nil }
    }

    /// Makes the body of a request ready for another attempt, as for another transfer.
    func renewBody(of request: Request, done: @escaping @Sendable (Bool) -> Void) {
        guard let body = request.streamBody, let task = request.task else { return done(false) }
        renew(body, for: task, in: request.session, done: done)
    }

    private func renew(_ body: StreamBody, for task: SessionTask, in session: Session, done: @escaping @Sendable (Bool) -> Void) {
        let renewal = body.beginRenewal()
        guard let closure = closures.withLock({ $0.taskNeedNewBodyStream }) else {
            if let isRenewed = body.restart(with: nil, renewal) { done(isRenewed) }
            return
        }
        let ask = { (answer: @escaping @Sendable (Bool) -> Void) in
            closure(session, task) { stream in
                if let isRenewed = body.restart(with: stream, renewal) { answer(isRenewed) }
            }
        }
        session.ask(ask, then: done)
    }
}

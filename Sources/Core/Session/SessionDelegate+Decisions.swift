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
        return closures.withLock { $0.dataTaskDidReceiveResponse != nil || $0.dataTaskDidReceiveResponseWithCompletion != nil }
    }

    /// The verdict, if neither code of users nor anything that blocks has a part in it; on the transport's thread.
    func judgeAtOnce(_ head: ResponseHead, of task: SessionTask, in session: Session) -> ResponseVerdict? {
        guard head.isRedirect, session.cookies == nil || !head.contains("set-cookie"), !decidesAboutResponses else { return nil }
        guard let transfer = task.currentTransfer else { return .accept }
        return redirect(transfer, head, of: task, in: session).verdict
    }

    private var decidesAboutResponses: Bool {
        closures.withLock { closures in
            closures.dataTaskDidReceiveResponse != nil || closures.dataTaskDidReceiveResponseWithCompletion != nil
                || closures.taskWillPerformHTTPRedirection != nil || closures.taskWillPerformHTTPRedirectionWithCompletion != nil
                || closures.taskNeedNewBodyStream != nil || closures.taskNeedNewBodyStreamWithCompletion != nil
        }
    }

    /// Decides on the session's queue; `decided` is called there, once at the most: never when somebody who was asked never answers.
    func judge(_ head: ResponseHead, of task: SessionTask, in session: Session, decided: @escaping @Sendable (ResponseVerdict) -> Void) {
        session.queue.async {
            guard let transfer = task.currentTransfer, let request = self[task] else { return decided(.accept) }
            let judgement = Judgement(
                head: head, transfer: transfer, task: task, request: request, session: session, delegate: self, decided: decided)
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

    fileprivate func redirect(_ transfer: TransferRequest, _ head: ResponseHead, of task: SessionTask, in session: Session)
        -> RedirectProposal
    {
        do throws(CurlewError) {
            let next = try session.configuration.redirects.next(after: transfer, head, hops: task.redirectCount)
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
    let decided: @Sendable (ResponseVerdict) -> Void

    /// The response as Foundation's users know it.
    private var response: HTTPURLResponse? { ResponseContext(transfer: transfer, head: head).response }

    // MARK: Redirect

    func followRedirect() {
        let proposal = proposal
        guard case .refuse(.redirectFailed(reason: .bodyNotRepeatable)) = proposal else { return ask(about: proposal) }
        delegate.renewBody(of: transfer, task, in: session) { isRenewed in
            ask(about: isRenewed ? self.proposal : proposal)
        }
    }

    private var proposal: SessionDelegate.RedirectProposal {
        delegate.redirect(transfer, head, of: task, in: session)
    }

    private func ask(about proposal: SessionDelegate.RedirectProposal) {
        switch proposal {
        case .none: answerChallenge()
        case .refuse: decided(proposal.verdict)
        case .follow(let next): ask(about: next)
        }
    }

    private func ask(about next: TransferRequest) {
        let (now, later) = delegate.closures.withLock {
            ($0.taskWillPerformHTTPRedirection, $0.taskWillPerformHTTPRedirectionWithCompletion)
        }
        guard now != nil || later != nil, let response, let proposed = next.urlRequest else {
            return decided(.goOn(NextTransfer(request: next, reason: .redirect)))
        }
        if let later {
            later(session, task, response, proposed) { chosen in
                session.queue.async { follow(chosen, insteadOf: proposed, next) }
            }
        } else if let now {
            follow(now(session, task, response, proposed), insteadOf: proposed, next)
        }
    }

    private func follow(_ chosen: URLRequest?, insteadOf proposed: URLRequest, _ next: TransferRequest) {
        // Nobody wants to go there: the redirect is the response.
        guard let chosen else { return dispose() }
        do {
            let request = chosen == proposed ? next : try next.changed(to: chosen, from: proposed, in: session)
            decided(.goOn(NextTransfer(request: request, reason: .redirect)))
        } catch {
            decided(.refuse(error))
        }
    }

    // MARK: Challenge

    private func answerChallenge() {
        let handling = ChallengeHandling(head, to: transfer, of: task, request) { outcome in
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
        let (now, later) = delegate.closures.withLock { ($0.dataTaskDidReceiveResponse, $0.dataTaskDidReceiveResponseWithCompletion) }
        guard now != nil || later != nil, request is DataRequest, let response else { return decided(.accept) }
        if let later {
            later(session, task, response) { disposition in
                session.queue.async { apply(disposition) }
            }
        } else if let now {
            apply(now(session, task, response))
        }
    }

    private func apply(_ disposition: URLSession.ResponseDisposition) {
        switch disposition {
        case .cancel: decided(.refuse(CurlewError.cancelled))
        case URLSession.ResponseDisposition.download: becomeDownload()
        default: decided(.accept)
        }
    }

    private func becomeDownload() {
        do {
            try (request as? DataRequest)?.dataDelegate.receiveIntoFile()
            delegate.closures.withLock { $0.dataTaskDidBecomeDownloadTask }?(session, task, task)
            decided(.accept)
        } catch {
            decided(.refuse(error))
        }
    }
}

extension TransferRequest {
    /// The transfer with what a user has changed in it.
    fileprivate func changed(to chosen: URLRequest, from proposed: URLRequest, in session: Session) throws -> TransferRequest {
        let isSameBody = chosen.httpBody == proposed.httpBody && chosen.httpBodyStream == nil
        var result = try TransferRequest(
            chosen, given: GivenHeaders(headers, in: proposed), body: isSameBody ? body : nil, in: session)
        let interface = result.options.interface
        result.options = options
        result.options.interface = interface ?? options.interface
        result.mayPause = mayPause
        result.expectsLargeBody = expectsLargeBody
        return result
    }
}

extension URLSession.ResponseDisposition {
    /// `becomeDownload`, which Foundation on Linux has deprecated because its own sessions can't do it.
    static let download = URLSession.ResponseDisposition(rawValue: 2)
}

// MARK: - Bodies

extension SessionDelegate {
    /// Makes the body of a transfer ready for being sent again: a stream by one that users give. On the session's queue, where `done` is
    /// called, too.
    func renewBody(of transfer: TransferRequest, _ task: SessionTask, in session: Session, done: @escaping @Sendable (Bool) -> Void) {
        guard let body = transfer.body, !body.rewind() else { return done(true) }
        guard let body = body as? StreamBody else { return done(false) }
        renew(body, for: task, in: session, done: done)
    }

    /// Whether users give a request's stream anew.
    func mayRenewBody(of request: Request) -> Bool {
        request.streamBody != nil
            && closures.withLock { $0.taskNeedNewBodyStream != nil || $0.taskNeedNewBodyStreamWithCompletion != nil }
    }

    /// Makes the body of a request ready for another attempt, as for another transfer.
    func renewBody(of request: Request, done: @escaping @Sendable (Bool) -> Void) {
        guard let body = request.streamBody, let task = request.task else { return done(false) }
        renew(body, for: task, in: request.session, done: done)
    }

    private func renew(_ body: StreamBody, for task: SessionTask, in session: Session, done: @escaping @Sendable (Bool) -> Void) {
        let (now, later) = closures.withLock { ($0.taskNeedNewBodyStream, $0.taskNeedNewBodyStreamWithCompletion) }
        guard let later else { return done(body.restart(with: now?(session, task))) }
        later(session, task) { stream in
            let isRenewed = body.restart(with: stream)
            session.queue.async { done(isRenewed) }
        }
    }
}

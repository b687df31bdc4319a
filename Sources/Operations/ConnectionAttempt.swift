// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewURLLoading
import Dispatch

/// One connection of an operation: from a start or resumption to the next pause or to completion.
///
/// Events arrive from the core on the session's queues and are forwarded to the operation's queue, which serializes everything about an
/// operation. A cancelled attempt drops events that still arrive.
final class ConnectionAttempt: @unchecked Sendable {  // variables are used on the operation's queue, except those in the lock
    private struct Links {
        var pool: ConnectionPool?
        var request: DataRequest?
        var isCancelled = false
        /// Ends the wait for a trust decision.
        var cancelTrustEvaluation: (@Sendable () -> Void)?
    }

    let operation: URLConnectionOperation
    /// The version to resume; `nil` if the whole body is requested.
    let resumption: RangeResumption?
    /// The number of bytes already received when the attempt began.
    let offset: Int64
    /// Receives the body of an error response in place of the operation's sink, whose contents stay.
    var errorSink: MemorySink?
    /// The response that the one of an error has replaced: that of the bytes in the operation's sink.
    var replacedResponse: HTTPURLResponse?
    /// Whether the body is appended to the bytes that were there when the attempt began.
    var isAppending = false
    /// The number of bytes at the body's start that are skipped because the sink has them already.
    var bytesToSkip: Int64 = 0
    /// The length of the complete body; −1 if unknown.
    var expectedLength: Int64 = -1
    private let links = Lock(Links())

    init(_ operation: URLConnectionOperation, resumption: RangeResumption?, offset: Int64) {
        self.operation = operation
        self.resumption = resumption
        self.offset = offset
    }

    /// The head of the last response, with all its fields.
    var head: ResponseHead? { links.withLock { $0.request }?.responseHead }

    // MARK: Start and cancellation

    /// Sends a request; pieces of its body arrive as fast as the operation accepts them.
    func begin(_ urlRequest: URLRequest, with options: RequestOptions?, in pool: ConnectionPool) {
        let request = pool.makeRequest(urlRequest, with: options, for: self)
        links.withLock { links in
            links.pool = pool
            links.request = request
        }
        let body = request.bodyStream()
        request.resume()
        Task.detached(priority: .utility) { [self] in
            do {
                for try await piece in body { try await operation.receive(piece, of: self) }
                operation.completed(self, with: nil)
            } catch {
                operation.completed(self, with: error)
            }
        }
    }

    /// Cancels the request, which has no effect on a completed one. Calling it again does nothing.
    func cancel() {
        let old = links.withLock { links in
            defer { links = Links(isCancelled: true) }
            return links
        }
        old.cancelTrustEvaluation?()
        guard let request = old.request else { return }
        request.cancel()
        old.pool?.forget(request)
    }

    private var isCancelled: Bool { links.withLock { $0.isCancelled } }

    /// Runs `work` on the operation's queue, or `otherwise`, which ends the core's wait, if the attempt was cancelled by then.
    private func onQueue(_ work: @escaping @Sendable (URLConnectionOperation) -> Void, otherwise: @escaping @Sendable () -> Void = {}) {
        operation.queue.async { [self] in
            if isCancelled { otherwise() } else { work(operation) }
        }
    }

    // MARK: Events, on queues of the session

    func received(_ response: HTTPURLResponse, proceed: @escaping @Sendable (Bool) -> Void) {
        onQueue { operation in
            proceed(operation.received(response, of: self))
        } otherwise: {
            proceed(false)
        }
    }

    func redirected(by response: HTTPURLResponse, to request: URLRequest, _ completion: @escaping @Sendable (URLRequest?) -> Void) {
        onQueue { operation in
            completion(operation.connection(willSend: request, redirectResponse: response))
        } otherwise: {
            completion(nil)
        }
    }

    func needsBodyStream(_ completion: @escaping @Sendable (InputStream?) -> Void) {
        onQueue { operation in
            completion(operation.connectionNeedNewBodyStream(for: operation.request))
        } otherwise: {
            completion(nil)
        }
    }

    func sent(_ now: Int64, _ total: Int64, _ expected: Int64) {
        onQueue { operation in
            let announced = operation.request.value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
            operation.connection(
                didSendBodyData: now, totalBytesWritten: total, totalBytesExpectedToWrite: expected < 0 ? announced ?? -1 : expected)
        }
    }

    func willCache(_ proposed: CachedURLResponse, _ completion: @escaping @Sendable (CachedURLResponse?) -> Void) {
        onQueue { operation in
            completion(operation.connection(willCache: proposed))
        } otherwise: {
            completion(nil)
        }
    }

    func challenged(
        _ challenge: URLAuthenticationChallenge,
        _ completion: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let host = challenge.protectionSpace.host.comparableHost
        let question = OperationChallenge(kind: .credential, challenge: challenge, host: host) { [self] disposition in
            switch disposition {
            case .use(let credential): completion(.useCredential, credential)
            case .performDefault: performDefault(challenge, completion)
            case .reject: completion(.rejectProtectionSpace, nil)
            case .continueWithout, .acceptServerTrust: completion(.useCredential, nil)
            case .cancel:
                operation.cancelledChallenge(of: self)
                completion(.cancelAuthenticationChallenge, nil)
            }
        }
        onQueue { operation in
            operation.connection(willSendRequestFor: question)
        } otherwise: {
            question.cancel()
        }
    }

    /// The URL's user and password take precedence over the operation's credential, which takes precedence over the storage.
    private func performDefault(
        _ challenge: URLAuthenticationChallenge, _ completion: (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard challenge.previousFailureCount == 0 else { return completion(.useCredential, nil) }
        let usesStorage = operation.usesCredentialStorage
        if operation.request.url?.user == nil, let credential = operation.credential {
            return completion(.useCredential, usesStorage ? credential : credential.withoutPersistence)
        }
        let hasCredential = usesStorage || operation.request.url?.user != nil
        completion(hasCredential ? .performDefaultHandling : .rejectProtectionSpace, nil)
    }

    /// Evaluates a server's trust, blocking until the decision is made; called on a queue that serves nothing else.
    func evaluate(_ trust: ServerTrust, _ host: String) -> Bool {
        let isTrusted = Lock(false)
        let decided = DispatchSemaphore(value: 0)
        let isCancelled = links.withLock { links in
            links.cancelTrustEvaluation = { decided.signal() }
            return links.isCancelled
        }
        guard !isCancelled else { return false }
        ask(about: trust, host) { isAccepted in
            isTrusted.withLock { $0 = isAccepted }
            decided.signal()
        }
        decided.wait()
        links.withLock { $0.cancelTrustEvaluation = nil }
        return isTrusted.withLock { $0 }
    }

    /// Passes the challenge to the operation without retaining it: an unanswered challenge is cancelled when it is released.
    private func ask(about trust: ServerTrust, _ host: String, _ done: @escaping @Sendable (Bool) -> Void) {
        operation.queue.async { [self] in
            let question = OperationChallenge(kind: .serverTrust(trust), challenge: nil, host: host) { [operation] disposition in
                switch disposition {
                case .acceptServerTrust: done(true)
                case .use, .performDefault: done(operation.securityPolicy.evaluate(trust, forDomain: host))
                case .continueWithout, .reject, .cancel: done(false)
                }
            }
            if !isCancelled { operation.connection(willSendRequestFor: question) }
        }
    }
}

extension URLCredential {
    /// The credential without persistence; returned unchanged unless it holds a user and a password.
    fileprivate var withoutPersistence: URLCredential {
        guard let user, let password else { return self }
        return URLCredential(user: user, password: password, persistence: .none)
    }
}

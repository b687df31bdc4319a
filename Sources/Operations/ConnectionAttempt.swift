// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// One connection of an operation: from a start, or the end of a pause, to the next pause or the end.
///
/// What the core tells of it arrives on queues of the session and goes on to the operation's own, where everything of an operation happens
/// in order. An attempt that was given up drops what still arrives.
final class ConnectionAttempt: @unchecked Sendable {  // the variables are used on the operation's queue, but for the locked ones
    private struct Links {
        var pool: ConnectionPool?
        var request: DataRequest?
        var isOver = false
        /// Ends the wait for a judgement of the server.
        var refuseServer: (@Sendable () -> Void)?
    }

    let operation: URLConnectionOperation
    /// The version of which the rest is asked for; `nil` where the whole is.
    let resumption: RangeResumption?
    /// How many bytes were there when it began.
    let offset: Int64
    /// Where the body goes, if not to the operation's own place.
    var aside: MemorySink?
    /// Whether the body is put behind what was there when it began.
    var isAppending = false
    /// How many bytes of the body are there already, and are passed over.
    var bytesToSkip: Int64 = 0
    /// The length of the whole; −1 if nobody knows.
    var expectedLength: Int64 = -1
    private let links = Lock(Links())

    init(_ operation: URLConnectionOperation, resumption: RangeResumption?, offset: Int64) {
        self.operation = operation
        self.resumption = resumption
        self.offset = offset
    }

    /// The head of the last response, with all its fields.
    var head: ResponseHead? { links.withLock { $0.request }?.responseHead }

    // MARK: Beginning and end

    /// Sends a request; its body comes piece by piece, as fast as it is taken.
    func begin(_ urlRequest: URLRequest, in pool: ConnectionPool) {
        let request = pool.makeRequest(urlRequest, for: self)
        links.withLock { links in
            links.pool = pool
            links.request = request
        }
        let body = request.bodyStream()
        request.resume()
        Task.detached(priority: .utility) { [self] in
            do {
                for try await piece in body { try await operation.take(piece, of: self) }
                operation.ended(self, with: nil)
            } catch {
                operation.ended(self, with: error)
            }
        }
    }

    /// Gives up the connection. Again does nothing.
    func end() {
        let old = links.withLock { links in
            defer { links = Links(isOver: true) }
            return links
        }
        old.refuseServer?()
        guard let request = old.request else { return }
        request.cancel()
        old.pool?.forget(request)
    }

    private var isOver: Bool { links.withLock { $0.isOver } }

    /// Does something on the operation's queue, if the attempt still matters there; else something that ends the wait for it.
    private func onQueue(_ work: @escaping @Sendable (URLConnectionOperation) -> Void, otherwise: @escaping @Sendable () -> Void = {}) {
        operation.queue.async { [self] in
            if isOver { otherwise() } else { work(operation) }
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
        let host = challenge.protectionSpace.host.lowercased()
        let question = OperationChallenge(kind: .credential, challenge: challenge, host: host) { [self] answer in
            switch answer {
            case .use(let credential): completion(.useCredential, credential)
            case .performDefault: performDefault(challenge, completion)
            case .reject: completion(.rejectProtectionSpace, nil)
            case .continueWithout, .acceptServerTrust: completion(.useCredential, nil)
            case .cancel:
                operation.refusedChallenge(of: self)
                completion(.cancelAuthenticationChallenge, nil)
            }
        }
        onQueue { operation in
            operation.connection(willSendRequestFor: question)
        } otherwise: {
            question.cancel()
        }
    }

    /// The URL's name and password go before the operation's credential, and that before the storage.
    private func performDefault(
        _ challenge: URLAuthenticationChallenge, _ completion: (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard challenge.previousFailureCount == 0 else { return completion(.useCredential, nil) }
        let usesStorage = operation.usesCredentialStorage
        if operation.request.url?.user == nil, let credential = operation.credential {
            return completion(.useCredential, usesStorage ? credential : credential.unkept)
        }
        let isAtHand = usesStorage || operation.request.url?.user != nil
        completion(isAtHand ? .performDefaultHandling : .rejectProtectionSpace, nil)
    }

    /// Asks whether a server is trusted, and waits: for a queue that nobody else uses.
    func judge(_ trust: ServerTrust, _ host: String) -> Bool {
        let verdict = Lock(false)
        let isThere = DispatchSemaphore(value: 0)
        let isWanted = links.withLock { links in
            links.refuseServer = { isThere.signal() }
            return !links.isOver
        }
        guard isWanted else { return false }
        ask(about: trust, host) { isAccepted in
            verdict.withLock { $0 = isAccepted }
            isThere.signal()
        }
        isThere.wait()
        links.withLock { $0.refuseServer = nil }
        return verdict.withLock { $0 }
    }

    /// Asks without keeping the question, which is cancelled when nobody keeps it.
    private func ask(about trust: ServerTrust, _ host: String, _ done: @escaping @Sendable (Bool) -> Void) {
        operation.queue.async { [self] in
            let question = OperationChallenge(kind: .serverTrust(trust), challenge: nil, host: host) { [operation] answer in
                switch answer {
                case .acceptServerTrust: done(true)
                case .use, .performDefault: done(operation.securityPolicy.evaluate(trust, forDomain: host))
                case .continueWithout, .reject, .cancel: done(false)
                }
            }
            if !isOver { operation.connection(willSendRequestFor: question) }
        }
    }
}

extension URLCredential {
    /// The same for this request alone; one that is no name and password, as it is.
    fileprivate var unkept: URLCredential {
        guard let user, let password else { return self }
        return URLCredential(user: user, password: password, persistence: .none)
    }
}

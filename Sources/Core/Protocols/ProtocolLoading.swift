// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import Dispatch

// What a `ProtocolTransport` knows of the classes that load requests in place of the network: Foundation's, or those of a layer above, which
// may be asked with an object of that layer in place of a request.

/// The classes of a session.
package protocol ProtocolSource: Sendable {
    /// Whether there is none at the moment: requests are not offered then.
    var isEmpty: Bool { get }

    /// Whether loads are under the idle and the total timeout of their requests.
    var limitsTime: Bool { get }

    /// Returns what loads a request, if a class accepts it. Called on the queue of the classes.
    func makeLoader(of offer: ProtocolOffer) -> (any ProtocolLoader)?
}

/// An instance of a class; called on the queue of the classes.
package protocol ProtocolLoader: AnyObject {
    /// Starts the load.
    func startLoading()
    /// The load has ended, or is no longer wanted.
    func stopLoading()
}

/// A request that is offered to classes.
package struct ProtocolOffer {
    /// The request, as it would be sent; the body of a file or a stream is its `httpBodyStream`.
    package var request: URLRequest
    /// The object that has the request; `nil` for none.
    package let owner: (any RequestOwner)?
    /// Receives what the instance has loaded.
    package let events: ProtocolEvents
}

// MARK: - Foundation's classes

extension URLProtocol: ProtocolLoader {
    /// Makes an instance of a class, which loads the canonical form of a request.
    package static func makeLoader(_ type: URLProtocol.Type, of offer: ProtocolOffer) -> any ProtocolLoader {
        type.init(request: type.canonicalRequest(for: offer.request), cachedResponse: nil, client: FoundationClient(offer.events))
    }
}

/// Classes of Foundation's, which are asked with the request.
struct FoundationClasses: ProtocolSource {
    let classes: [URLProtocol.Type]

    var isEmpty: Bool { classes.isEmpty }
    var limitsTime: Bool { false }

    func makeLoader(of offer: ProtocolOffer) -> (any ProtocolLoader)? {
        classes.first { $0.canInit(with: offer.request) }.map { URLProtocol.makeLoader($0, of: offer) }
    }
}

/// Passes the calls of a class to events.
private final class FoundationClient: NSObject, URLProtocolClient {
    private let events: ProtocolEvents

    init(_ events: ProtocolEvents) {
        self.events = events
    }

    func urlProtocol(_ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy) {
        events.receive(response)
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) { events.load(data) }

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) { events.complete(nil) }

    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) { events.complete(error) }

    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse) {
        events.redirect(to: request, redirectResponse)
    }

    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) { events.use(cachedResponse) }

    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) { events.answer(challenge) }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) { events.cancel(challenge) }
}

// MARK: - Events

/// Turns what an instance reports, on any thread, into events of a transfer.
package final class ProtocolEvents: Sendable {
    private struct State {
        var hasHead = false
        var isComplete = false
        /// When the instance has last reported something.
        var lastTime = MonotonicTime.now()
        /// The challenges that have no answer yet.
        var challenges: [URLAuthenticationChallenge] = []
    }

    private let pump: ResponsePump
    /// `nil` for a request that is not known.
    private let source: ExchangeSource?
    /// The number of the transfer.
    private let id: Int
    private let queue: DispatchQueue
    private let state = Lock(State())

    init(_ pump: ResponsePump, id: Int, source: ExchangeSource?, queue: DispatchQueue) {
        self.pump = pump
        self.id = id
        self.source = source
        self.queue = queue
    }

    /// When the instance has last reported something, or was started; `nil` once it has reported the end.
    var lastTime: Nanoseconds? { state.withLock { $0.isComplete ? nil : $0.lastTime } }

    /// Counts as a report.
    func touch() { state.withLock { $0.lastTime = MonotonicTime.now() } }

    // The lock is held while an event is added to the pump, to keep the order of calls from several threads.

    /// The response; only the first counts.
    package func receive(_ response: URLResponse) { receive(ResponseHead(response), ProtocolResponse(response)) }

    /// A piece of the body.
    package func load(_ data: Data) {
        state.withLock { state in
            guard !state.isComplete else { return }
            state.lastTime = MonotonicTime.now()
            pump.add([.bytes(data)])
        }
    }

    /// The end: `nil` for that of the body.
    package func complete(_ error: (any Error)?) {
        state.withLock { state in
            guard !state.isComplete else { return }
            state.isComplete = true
            state.challenges = []
            pump.add([.complete(TransferCompletion(error: error, metrics: TransferMetrics()))])
        }
    }

    /// The response is a redirect to a request, and ends here.
    package func redirect(to request: URLRequest, _ response: URLResponse) {
        receive(ResponseHead(response, redirectingTo: request.url), ProtocolResponse(response, redirect: request))
        complete(nil)
    }

    /// The response, body and end are those of a cache.
    package func use(_ cached: CachedURLResponse) {
        receive(cached.response)
        load(cached.data)
        complete(nil)
    }

    private func receive(_ head: ResponseHead, _ response: ProtocolResponse) {
        state.withLock { state in
            guard !state.hasHead, !state.isComplete else { return }
            state.hasHead = true
            state.lastTime = MonotonicTime.now()
            source?.note(response, of: id)
            pump.add([.head(head)])
        }
    }

    // MARK: Challenges

    /// Has the request's closures answer a challenge by its sender: by default without them.
    package func answer(_ challenge: URLAuthenticationChallenge) {
        let isPending = state.withLock { state in
            state.lastTime = MonotonicTime.now()
            if !state.isComplete { state.challenges.append(challenge) }
            return !state.isComplete
        }
        guard isPending else { return }
        guard let source else { return answer(challenge, .performDefaultHandling, nil) }
        let shown = ShownChallenge(value: challenge)
        source.decide(about: challenge) { [queue] disposition, credential in
            let answer = ShownCredential(value: credential)
            queue.async { self.answer(shown.value, disposition, answer.value) }
        }
    }

    /// A challenge is withdrawn.
    package func cancel(_ challenge: URLAuthenticationChallenge) {
        state.withLock { $0.challenges.removeAll { $0 === challenge } }
    }

    private func answer(
        _ challenge: URLAuthenticationChallenge, _ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?
    ) {
        let isPending = state.withLock { state in
            guard let index = state.challenges.firstIndex(where: { $0 === challenge }) else { return false }
            state.challenges.remove(at: index)
            return true
        }
        guard isPending, let sender = challenge.sender else { return }
        switch disposition {
        case .useCredential:
            if let credential { sender.use(credential, for: challenge) } else { sender.continueWithoutCredential(for: challenge) }
        case .cancelAuthenticationChallenge: sender.cancel(challenge)
        case .rejectProtectionSpace: sender.rejectProtectionSpaceAndContinue(with: challenge)
        case .performDefaultHandling: sender.performDefaultHandling(for: challenge)
        @unknown default: sender.performDefaultHandling(for: challenge)
        }
    }

    private struct ShownChallenge: @unchecked Sendable {  // not changed by its receivers
        let value: URLAuthenticationChallenge
    }

    private struct ShownCredential: @unchecked Sendable {  // credentials are immutable
        let value: URLCredential?
    }
}

/// The response of a class, as the class has made it.
final class ProtocolResponse: @unchecked Sendable {  // not changed: responses and requests are values by contract
    let response: URLResponse
    /// The request to which it redirects.
    let redirect: URLRequest?

    init(_ response: URLResponse, redirect: URLRequest? = nil) {
        self.response = response
        self.redirect = redirect
    }
}

extension ExchangeSource {
    /// The object that has the request.
    var owner: (any RequestOwner)? { driver.settings?.options.ownership?.owner }

    /// Notes the response of the current attempt, before its head is delivered.
    fileprivate func note(_ response: ProtocolResponse, of id: Int) {
        driver.state.withLock { state in
            if state.number == id { state.attempt.protocolResponse = response }
        }
    }

    /// Has the closures of the request answer a challenge, on the session's queue.
    fileprivate func decide(about challenge: URLAuthenticationChallenge, _ completion: @escaping ChallengeCompletion) {
        let closures = driver.closures { $0 }
        guard let task = driver.task else { return completion(.performDefaultHandling, nil) }
        let session = driver.session
        let call: (() -> Void)?
        let method = challenge.protectionSpace.authenticationMethod
        if method == NSURLAuthenticationMethodServerTrust || method == NSURLAuthenticationMethodClientCertificate,
            let closure = closures.taskDidReceiveConnectionChallenge
        {
            call = { closure(session, task, challenge, completion) }
        } else if let closure = closures.taskDidReceiveChallenge {
            call = { closure(session, task, challenge, completion) }
        } else if let closure = closures.sessionDidReceiveChallenge {
            call = { closure(session, challenge, completion) }
        } else {
            call = nil
        }
        guard let call else { return completion(.performDefaultHandling, nil) }
        let shown = ChallengeCall(value: call)
        session.queue.async { [driver] in driver.inContext { shown.value() } }
    }

    private struct ChallengeCall: @unchecked Sendable {  // called once, on the session's queue
        let value: () -> Void
    }
}

extension Request {
    /// The response of the class that has loaded the request, as the class has made it: perhaps no `HTTPURLResponse`. `nil` for one of the
    /// network.
    package var protocolResponse: URLResponse? { driver.state.withLock { $0.attempt.protocolResponse }?.response }
}

extension SessionTask {
    /// The response of the class that loads the task, as the class has made it; `nil` for one of the network, and once the task has completed.
    package var protocolResponse: URLResponse? { driver?.state.withLock { $0.attempt.protocolResponse }?.response }
}

extension ResponseHead {
    /// The head of a `URLResponse`; one that is not an `HTTPURLResponse` counts as status 200.
    fileprivate init(_ response: URLResponse) {
        guard let response = response as? HTTPURLResponse else {
            self.init(statusCode: 200, headers: response.mimeType.map { HTTPHeaders([.contentType($0)]) } ?? [:])
            return
        }
        self.init(statusCode: response.statusCode, headers: HTTPHeaders(response))
    }

    /// The head of a redirect, also if the class has not made it one.
    fileprivate init(_ response: URLResponse, redirectingTo location: URL?) {
        let plain = ResponseHead(response)
        var headers = plain.headers
        if let location, headers.value(for: "Location") == nil { headers.append(name: "Location", value: location.absoluteString) }
        self.init(statusCode: plain.isRedirect ? plain.statusCode : 302, headers: headers)
    }
}

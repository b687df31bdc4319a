// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// The classes that are offered the tasks of a session, in their order.
struct ProtocolClasses: ProtocolSource {
    /// `nil` for those that are registered at the moment.
    private let given: [AnyClass]?

    /// The registered classes, at each request.
    static let registered = ProtocolClasses(given: nil)

    /// `nil` without a class.
    init?(_ classes: [AnyClass]) {
        let known = classes.filter { $0 is URLProtocol.Type || $0 is CurlewURLLoading.URLProtocol.Type }
        guard !known.isEmpty else { return nil }
        given = known
    }

    private init(given: [AnyClass]?) {
        self.given = given
    }

    private var classes: [AnyClass] { given ?? URLProtocol.registeredClasses }

    var isEmpty: Bool { classes.isEmpty }
    var limitsTime: Bool { true }

    func makeLoader(of offer: ProtocolOffer) -> (any ProtocolLoader)? {
        guard let task = offer.owner as? URLSessionTask else { return makeLoader(of: offer, nil) }
        var completed = offer
        completed.request = task.offered(offer.request)
        task.values.withLock { [request = completed.request] in $0.offered = request }
        defer { task.values.withLock { $0.offered = nil } }
        return makeLoader(of: completed, task)
    }

    private func makeLoader(of offer: ProtocolOffer, _ task: URLSessionTask?) -> (any ProtocolLoader)? {
        for type in classes {
            if let type = type as? URLProtocol.Type {
                let accepts = task.map { type.canInit(with: $0) } ?? type.canInit(with: offer.request)
                if accepts { return type.make(offer.request, of: task, ProtocolClient(offer.events)) }
            } else if let type = type as? CurlewURLLoading.URLProtocol.Type, type.canInit(with: offer.request) {
                return CurlewURLLoading.URLProtocol.makeLoader(type, of: offer)
            }
        }
        return nil
    }
}

/// Passes the calls of an instance to the transfer.
private final class ProtocolClient: NSObject, URLProtocolClient {
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
        `protocol`.task?.noteChosen(request)
        events.redirect(to: request, redirectResponse)
    }

    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) { events.use(cachedResponse) }

    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) { events.answer(challenge) }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) { events.cancel(challenge) }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import CurlewURLLoading

@testable import CurlewCore

/// Counts exchanges.
final class CountingInstrument: ExchangeInstrument {
    private final class Observation: ExchangeObservation {
        private let count: Lock<Int>

        init(_ count: Lock<Int>) { self.count = count }

        func didEnd(_ completion: ExchangeCompletion) { count.withLock { $0 += 1 } }
    }

    private let begunCount = Lock(0)
    private let endedCount = Lock(0)

    var begun: Int { begunCount.withLock { $0 } }
    var ended: Int { endedCount.withLock { $0 } }

    func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
        begunCount.withLock { $0 += 1 }
        return Observation(endedCount)
    }
}

/// Another session on the loops of a transport under test: none of its exchanges may be affected.
final class NeighbouringSession: Sendable {
    private let server: LoopbackServer
    private let task = Lock<Task<[String], Never>?>(nil)
    private let isEnding = Lock(false)

    init() throws { server = try .standard(recording: false) }

    /// Requests bodies one after the other until the end, and one that is not answered before.
    func begin(on transport: any Transport) {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        configuration.callbackQueue = callbackQueue
        let manager = SessionManager(configuration: configuration, transport: transport)
        let (url, silent) = (server.url("/bytes/70000"), server.url("/silent"))
        let loop = Task { [isEnding] in
            var problems: [String] = []
            let waiting = manager.request(silent).response { _ in }
            repeat {
                let response = await manager.request(url).serializingData().response
                if response.value?.count != 70_000 { problems.append("another session's exchange: \(response.result)") }
                try? await Task.sleep(for: .milliseconds(1))
            } while !isEnding.withLock { $0 } && problems.count < 5
            if waiting.delegate.error != nil { problems.append("another session's exchange has ended") }
            await manager.shutdown(gracePeriod: .zero)
            return problems
        }
        task.withLock { $0 = loop }
    }

    /// Ends the session; returns what went wrong.
    func end() async -> [String] {
        isEnding.withLock { $0 = true }
        let problems = await task.withLock { $0 }?.value ?? []
        server.stop()
        return problems
    }
}

/// Accepts no request.
final class UnwillingProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { false }
}

/// Loads the exchanges of one host.
final class ConformanceProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "stub" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url, let client, let (kind, seed) = ExchangeKind.parse(url.path) else { return }
        guard kind != .refused, kind != .cutHead else { return client.urlProtocol(self, didFailWithError: URLError(.cannotConnectToHost)) }
        guard kind != .silent, let head = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: [:]) else {
            return
        }
        client.urlProtocol(self, didReceive: head, cacheStoragePolicy: .notAllowed)
        let body = GeneratedBody(seed: seed)
        for offset in stride(from: 0, to: kind.receivedLength, by: 10_000) {
            let count = min(10_000, kind.receivedLength - offset)
            client.urlProtocol(self, didLoad: body.data(offset: Int64(offset), count: count))
        }
        switch kind.outcome {
        case .response: client.urlProtocolDidFinishLoading(self)
        case .failure: client.urlProtocol(self, didFailWithError: URLError(.networkConnectionLost))
        case .none: break
        }
    }

    override func stopLoading() {}
}

// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
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

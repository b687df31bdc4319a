// SPDX-License-Identifier: Apache-2.0
import Curlew
import ExampleServer
import Synchronization

/// Sends a thousand requests, fifty at a time.
@main
enum Program {
    static func main() async throws {
        let busy = Busy()
        let server = try LoopbackServer(recording: false) { request, connection in
            busy.begin()
            defer { busy.end() }
            _ = connection.pause(for: .milliseconds(2))
            return ServerResponse(status: 200, body: .data(Data(request.path.dropFirst().utf8)))
        }
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        let prices = try await PriceList(url: server.url(""), configuration: configuration).prices(of: 1...1000)
        guard prices.count == 1000, prices.allSatisfy({ $0 == $1 }), busy.most <= 50 else {
            throw TestError("\(prices.count) prices, at most \(busy.most) at a time")
        }
        print("1,000 requests, at most \(busy.most) at a time")
    }
}

/// How many requests the server answers, now and at most.
final class Busy: Sendable {
    private let state = Mutex((now: 0, most: 0))

    var most: Int { state.withLock { $0.most } }

    func begin() {
        state.withLock { ($0.now, $0.most) = ($0.now + 1, max($0.most, $0.now + 1)) }
    }

    func end() {
        state.withLock { $0.now -= 1 }
    }
}

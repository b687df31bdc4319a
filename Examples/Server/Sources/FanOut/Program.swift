// SPDX-License-Identifier: Apache-2.0
import Curlew
import ExampleServer
import Synchronization

/// Sends a thousand requests, fifty at a time: a task group that is given another request for each that has finished.
@main
enum Program {
    private static let count = 1000
    private static let limit = 50

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
        // The limit of the group is the one that counts.
        configuration.maximumConnectionsPerHost = limit
        let manager = SessionManager(configuration: configuration)

        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            var numbers = (1...count).makeIterator()
            func addNext() {
                guard let number = numbers.next() else { return }
                group.addTask {
                    try await manager.request(server.url("/\(number)"), options: RequestOptions(deadline: .seconds(20)))
                        .validate().serializingDecodable(Int.self).value
                }
            }
            for _ in 0..<limit { addNext() }
            var sum = 0
            // An error ends the loop, and cancels those in flight.
            while let number = try await group.next() {
                sum += number
                addNext()
            }
            return sum
        }
        let most = busy.most
        guard sum == (1...count).reduce(0, +), most <= limit else { throw TestError("\(sum), at most \(most) at a time") }
        print("\(count) requests, at most \(most) at a time")
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

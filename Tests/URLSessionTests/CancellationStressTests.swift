// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct CancellationStressTests {
    private static let count = TestLength.value(800, short: 160, long: 10_000)
    private static let tasks = 8

    // U2.2
    @Test(arguments: [false, true]) func `cancelling at any moment ends each call and leaves nothing`(hasDelegate: Bool) async throws {
        let server = try LoopbackServer.standard(recording: false)
        let session = URLSession(configuration: .ephemeral, delegate: hasDelegate ? Delegate() : nil, delegateQueue: nil)
        let small = try #require(URL(string: server.url("/bytes/500")))
        let large = try #require(URL(string: server.url("/bytes/300000")))
        // The second half with a delegate, whose calls are between the end of a transfer and that of the call.
        let perTask = Self.count / 2 / Self.tasks
        let longest = try await longestMoment(large, in: session)
        // Fewer calls where each takes long.
        let end = ContinuousClock.now + .seconds(90)
        let tally = await withTaskGroup(of: Tally.self) { group in
            for index in 0..<Self.tasks {
                group.addTask {
                    var generator = SplitMix(state: UInt64(index) + (hasDelegate ? 100 : 0))
                    var tally = Tally()
                    for round in 0..<perTask where ContinuousClock.now < end {
                        let url = generator.next() % 4 == 0 ? large : small
                        let call = Task { round % 2 == 0 ? try await data(url, in: session) : try await bytes(url, in: session) }
                        await moment(&generator, longest)
                        call.cancel()
                        tally.note(await call.result, expected: url == large ? 300_000 : 500)
                    }
                    return tally
                }
            }
            return await group.reduce(Tally()) { $0 + $1 }
        }
        #expect(tally.others == [])
        // Both happen, or the moments are not at random.
        #expect(tally.cancelled > 0)
        #expect(tally.complete > 0)
        #expect(await eventually { session.delegateQueue.operationCount == 0 })
        #expect(await session.allTasks.isEmpty)
        // The session still works, and its end closes what there is.
        #expect(try await data(small, in: session) == 500)
        session.invalidateAndCancel()
        #expect(await server.waitForConnectionsToClose())
    }

    private func data(_ url: URL, in session: URLSession) async throws -> Int { try await session.data(from: url).0.count }

    private func bytes(_ url: URL, in session: URLSession) async throws -> Int {
        var count = 0
        for try await _ in try await session.bytes(from: url).0 { count += 1 }
        return count
    }

    /// Four times as long as as many calls take that are not cancelled, but at least 33 milliseconds: a sanitizer, or another program, makes
    /// all of them ten times slower.
    private func longestMoment(_ url: URL, in session: URLSession) async throws -> Duration {
        let start = ContinuousClock.now
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<Self.tasks { group.addTask { try await bytes(url, in: session) } }
            try await group.waitForAll()
        }
        return max(start.duration(to: .now) * 4, .milliseconds(33))
    }

    /// Lets up to the longest moment pass, mostly much less: from before the request is made to after its end.
    private func moment(_ generator: inout SplitMix, _ longest: Duration) async {
        let time = longest / Int(1 << (generator.next() % 16))
        let start = ContinuousClock.now
        while start.duration(to: .now) < time { await Task.yield() }
    }

    private struct Tally: Sendable {
        var cancelled = 0
        var complete = 0
        var others: [String] = []

        mutating func note(_ result: Result<Int, any Error>, expected: Int) {
            switch result {
            case .success(expected): complete += 1
            case .success(let count): others.append("\(count) bytes")
            case .failure(let error as URLError) where error.code == .cancelled: cancelled += 1
            case .failure(let error): others.append("\(error)")
            }
        }

        static func + (first: Tally, second: Tally) -> Tally {
            Tally(
                cancelled: first.cancelled + second.cancelled, complete: first.complete + second.complete,
                others: first.others + second.others)
        }
    }

    private final class Delegate: NSObject, URLSessionTaskDelegate, Sendable {
        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {}
    }
}

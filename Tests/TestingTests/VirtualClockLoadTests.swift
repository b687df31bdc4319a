// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Testing

/// If a step of the clock took longer with each request or sleep, these would need many minutes.
@Suite(.timeLimit(.minutes(2))) struct VirtualClockLoadTests {
    @Test("the time of twenty thousand requests passes in seconds, with one delay or with delays of their own", arguments: [false, true])
    func manyRequests(areDifferent: Bool) async throws {
        let clock = VirtualClock(.automatic)
        let mock = MockTransport(clock: clock)
        let count = Lock(0)
        mock.stub { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return .text("ok").delayed(by: .milliseconds(areDifferent ? number : 1))
        }
        let manager = SessionManager(mock: mock)
        await withTaskGroup(of: String?.self) { group in
            for _ in 1...20_000 {
                group.addTask { await manager.request("https://api.example.org/").serializingString().response.value }
            }
            for await text in group where text != "ok" { Issue.record("\(text ?? "no response")") }
        }
        #expect(count.withLock { $0 } == 20_000)
        #expect(clock.elapsed >= (areDifferent ? .seconds(20) : .milliseconds(1)) && clock.waitCount == 0)
    }

    @Test("so does that of twenty thousand sleeps, of which half are cancelled") func manySleeps() async throws {
        let clock = VirtualClock(.automatic)
        let start = clock.now
        let sleeps = (1...20_000).map { number in
            Task { try await clock.sleep(until: start.advanced(by: .milliseconds(number))) }
        }
        for sleep in sleeps[..<10_000] { sleep.cancel() }
        for sleep in sleeps[10_000...] { try await sleep.value }
        #expect(clock.elapsed == .seconds(20))
        #expect(await eventually { clock.waitCount == 0 })
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewSigning

// A3.1
@Suite(.timeLimit(.minutes(1))) struct SharedCredentialsTests {
    private struct Unreachable: Error {}

    private static let start = Date(timeIntervalSince1970: 1_000_000)

    /// A service that gives credentials for an hour, and its clock.
    private final class Service: Sendable {
        struct State {
            var time = SharedCredentialsTests.start
            var asked = 0
            var fails = false
            var lifetime: TimeInterval = 3600
        }

        let state = Monitor(State())

        func shared() -> SharedCredentials {
            SharedCredentials(now: { self.state.read { $0.time } }) {
                try self.state.update { state in
                    state.asked += 1
                    if state.fails { throw Unreachable() }
                    return AWSCredentials(
                        accessKeyID: "\(state.asked)", secretAccessKey: "s", expiration: state.time.addingTimeInterval(state.lifetime))
                }
            }
        }

        func pass(_ seconds: TimeInterval) { state.update { $0.time += seconds } }
        var asked: Int { state.read { $0.asked } }
    }

    @Test func `credentials are replaced five minutes before they expire`() async throws {
        let service = Service()
        let shared = service.shared()
        #expect(try await shared.credentials().accessKeyID == "1")
        service.pass(3299)
        #expect(try await shared.credentials().accessKeyID == "1")
        service.pass(1)
        #expect(try await shared.credentials().accessKeyID == "1")
        #expect(await eventually { shared.known.first?.accessKeyID == "2" })
        #expect(try await shared.credentials().accessKeyID == "2")
        #expect(shared.known.map(\.accessKeyID) == ["2", "1"])
    }

    @Test func `credentials that can't be replaced are used until they expire, and the service is asked now and then`() async throws {
        let service = Service()
        let shared = service.shared()
        _ = try await shared.credentials()
        service.state.update { $0.fails = true }
        service.pass(3540)
        for _ in 0..<5 { #expect(try await shared.credentials().accessKeyID == "1") }
        #expect(service.asked == 2)
        service.pass(10)
        #expect(try await shared.credentials().accessKeyID == "1")
        #expect(service.asked == 3)
        service.pass(50)
        for _ in 0..<2 { await #expect(throws: Unreachable.self) { try await shared.credentials() } }
        #expect(service.asked == 5)
        service.state.update { $0.fails = false }
        #expect(try await shared.credentials().accessKeyID == "6")
    }

    @Test func `a service that does not answer is waited for in the last minute only`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let (time, asked) = (Monitor(Self.start), Monitor(0))
        let shared = SharedCredentials(now: { time.read { $0 } }) {
            let number = asked.update { asked in
                asked += 1
                return asked
            }
            if number == 2 { _ = await gate.wait() }
            return AWSCredentials(accessKeyID: "\(number)", secretAccessKey: "s", expiration: Self.start.addingTimeInterval(3600))
        }
        for seconds in [0, 3300, 3539] as [TimeInterval] {
            time.update { $0 = Self.start.addingTimeInterval(seconds) }
            #expect(try await shared.credentials().accessKeyID == "1")
            #expect(await eventually { asked.read { $0 } == (seconds > 0 ? 2 : 1) })
        }
        time.update { $0 = Self.start.addingTimeInterval(3540) }
        let waiting = (0..<5).map { _ in Task { try await shared.credentials().accessKeyID } }
        gate.open()
        for wait in waiting { #expect(try await wait.value == "2") }
        #expect(asked.read { $0 } == 2)
    }

    @Test func `credentials that have expired by this clock are used by those that have asked for them`() async throws {
        let service = Service()
        let shared = service.shared()
        service.state.update { $0.lifetime = -1 }
        for key in ["1", "2"] { #expect(try await shared.credentials().accessKeyID == key) }
        #expect(shared.known.map(\.accessKeyID) == ["2", "1"])
    }

    @Test func `texts have no credentials`() async throws {
        let shared = SharedCredentials {
            AWSCredentials(accessKeyID: "AKIDAKIDAKIDAKID", secretAccessKey: "s3cr3t", sessionToken: "s3cr3t")
        }
        _ = try await shared.credentials()
        var text = "\(shared) \(String(reflecting: shared)) \([shared])"
        dump(shared, to: &text)
        #expect(!text.contains("s3cr3t"))
    }
}

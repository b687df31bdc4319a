// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

@Suite(.timeLimit(.minutes(2))) struct BenchTests {
    /// The number in the lines of a report that begin with a label.
    private static func number(_ label: String, in text: String) -> Int {
        text.split(separator: "\n").filter { $0.hasPrefix(label) }
            .compactMap { Int($0.dropFirst(label.count).drop { $0 == " " }.prefix { $0.isNumber }) }.reduce(0, +)
    }

    @Test("each dropped connection is counted, as a failure or as a request that was sent again", arguments: ["GET", "POST"])
    func drops(_ method: String) async throws {
        let drops = Lock((requests: 0, dropped: 0))
        let server = try LoopbackServer { _, connection in
            let isDropped = drops.withLock { counts in
                counts.requests += 1
                guard counts.requests % 5 == 1 else { return false }
                counts.dropped += 1
                return true
            }
            guard isDropped else { return .ok("x") }
            connection.close()
            return nil
        }
        let result = try await ToolRun.run("bench", "-n", "100", "-c", "4", method, server.url("/"))
        let (requests, dropped) = drops.withLock { $0 }
        let (failed, again) = (Self.number("failed", in: result.text), Self.number("sent again", in: result.text))
        #expect(failed + again == dropped, "\(result.text)")
        #expect(Self.number("requests", in: result.text) == 100)
        #expect(requests == 100 + again)
        // A connection that is new is dropped, too: its request is not repeated.
        #expect(failed > 0 && result.status == 9)
        #expect(result.error == "curlew: \(failed) of 100 requests failed\n")
        if method == "GET" { #expect(again > 0) }
    }

    @Test("the exit status is that of the failures") func statuses() async throws {
        let server = try LoopbackServer.standard()
        let secure = try await ToolRun.run("bench", "-n", "3", "https://127.0.0.1:\(server.port)/")
        #expect(secure.status == 7)
        #expect(secure.error.hasPrefix("curlew: all requests failed: "))
        let late = try await ToolRun.run("bench", "-n", "3", "--timeout", "0.2", server.url("/silent"))
        #expect(late.status == 8)
        #expect(try await ToolRun.run("bench", "-n", "1000", "--deadline", "0.2", server.url("/silent")).status == 8)
        #expect(try await ToolRun.run("bench", "-n", "3", server.url("/cut-head")).status == 9)
        #expect(try await ToolRun.run("bench", "-n", "3", server.url("/status/500")).status == 0)
        server.stop()
        #expect(try await ToolRun.run("bench", "-n", "3", server.url("/")).status == 6)
    }

    @Test("of several kinds of failures the most frequent one counts")
    func mostFrequent() {
        let (late, lost) = (Outcome(status: .timeout, message: "late"), Outcome(status: .transfer, message: "lost"))
        #expect(BenchRun.outcome([], of: 3) == .success)
        #expect(BenchRun.outcome([lost, late, late], of: 5) == Outcome(status: .timeout, message: "3 of 5 requests failed"))
        #expect(BenchRun.outcome([lost, late], of: 2) == Outcome(status: .transfer, message: "all requests failed: lost"))
    }

    @Test("with a duration, requests are begun until it has passed, and awaited") func duration() async throws {
        let server = try LoopbackServer { request, _ in
            request.path == "/slow" ? ServerResponse.ok("x").delayed(by: .milliseconds(600)) : .ok("x")
        }
        let start = ContinuousClock.now
        let result = try await ToolRun.run("bench", "--duration", "0.3", "-c", "2", server.url("/"))
        #expect(ContinuousClock.now - start >= .milliseconds(300))
        #expect(result.status == 0)
        let count = server.requestCount
        #expect(count > 2 && Self.number("requests", in: result.text) == count)
        let slow = try await ToolRun.run("bench", "--duration", "0.3", "-c", "2", server.url("/slow"))
        #expect(slow.text.contains("statuses    200: 2\n"))
        // Ten are due, and two can be sent.
        let late = try await ToolRun.run("bench", "--duration", "0.5", "--rate", "20", "-c", "2", server.url("/slow"))
        #expect(late.text.contains("statuses    200: 2\n"), "\(late.text)")
        #expect(late.text.contains("not sent    8: due, but --concurrency was reached\n"), "\(late.text)")
        // What was due and not sent has failed.
        var words = ["bench", "--duration", "0.5", "--rate", "20", "-c", "2", server.url("/slow")]
        for text in ["failures<=0", "p99<10s", "mean<10s"] { words.append("--assert=\(text)") }
        let broken = try await ToolRun(words).result()
        #expect(broken.status == 1)
        let unsent = "it was without an end, as requests were due and not sent"
        #expect(broken.error == "curlew: not met: failures<=0: it was 8; p99<10s: \(unsent); mean<10s: \(unsent)\n")
        let rate = try await ToolRun.run("bench", "--duration", "0.2", "--rate", "50", server.url("/"))
        #expect(rate.text.contains("statuses    200: 10\n"), "\(rate.text)")
        let both = try await ToolRun.run("bench", "--duration", "1", "-n", "3", server.url("/"))
        #expect(both.status == 2)
        #expect(both.error.hasPrefix("curlew: --requests and --duration can't be combined"))
    }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewWebSocket
import Testing

@Suite(.timeLimit(.minutes(5))) struct WebSocketMemoryTests {
    @Test("a hundred thousand messages use no more memory than the first ten thousand") func longEcho() async throws {
        let server = try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }) { try $0.echo() }
        let count = Scale.limitsMemory ? 100_000 : 10_000
        let report = try await Probe.run("websocket", server.url(), "\(count)")
        #expect(report.status == 0)
        #expect(report["messages"] == count)
        let (tenth, end) = try (#require(report["tenth"]), #require(report["end"]))
        if Scale.limitsMemory { #expect(end - tenth < 2 << 20, "\(tenth) bytes grew to \(end)") }
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

@Suite(.timeLimit(.minutes(1))) struct LaterFoundationTests {
    // U2.2
    @Test func `another module's lines of bytes take precedence except for those of a response`() async throws {
        let bytes = AsyncStream<UInt8> { $0.finish() }
        #expect(bytes.lines == "another module's")
        #expect(bytes.characters == "another module's")
        #expect(bytes.unicodeScalars == "another module's")
        let server = try LoopbackServer { _, _ in .ok("one\ntwo") }
        let (body, _) = try await URLSession(configuration: .ephemeral).bytes(from: server.url)
        let lines: AsyncLineSequence<URLSession.AsyncBytes> = body.lines
        #expect(try await lines.reduce(into: []) { $0.append($1) } == ["one", "two"])
    }
}

/// As Foundation may declare them one day.
extension AsyncSequence where Element == UInt8 {
    fileprivate var lines: String { "another module's" }
    fileprivate var characters: String { "another module's" }
    fileprivate var unicodeScalars: String { "another module's" }
}

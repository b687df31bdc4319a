// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

@Suite(.timeLimit(.minutes(1))) struct DataTaskTests {
    // U2.2
    @Test func `a response is awaited`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let session = URLSession(configuration: .ephemeral)
        let (data, response) = try await session.data(from: try #require(URL(string: server.url("/bytes/5"))))
        #expect(data.count == 5)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
    }
}

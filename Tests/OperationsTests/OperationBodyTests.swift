// SPDX-License-Identifier: Apache-2.0
import CurlewOperations
import CurlewTestSupport
import Testing

/// What an operation that has failed keeps of a body.
@Suite(.timeLimit(.minutes(1))) struct OperationBodyTests {
    @Test("without a response there is no data; an operation that is cancelled itself throws its error") func noResponse() async throws {
        let server = try LoopbackServer.standard()
        let silent = try URLConnectionOperation.make(server.url("/silent"))
        let task = Task { try await silent.run() }
        await silent.reach(.executing)
        silent.cancel()
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(silent.response == nil && silent.responseData == nil && silent.responseString == nil)
    }

    @Test("an operation that is cancelled while its body arrives keeps what was received") func partialBody() async throws {
        let server = try HalfServer()
        let operation = try HTTPRequestOperation.make(server.url)
        operation.start()
        await operation.received(0)
        operation.cancel()
        await operation.waitForEnd()
        #expect(operation.response != nil && operation.responseObject == nil && operation.totalBytesRead > 0)
        #expect(operation.responseData.map { Int64($0.count) } == operation.totalBytesRead)
    }
}

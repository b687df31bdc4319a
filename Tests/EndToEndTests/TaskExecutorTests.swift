// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct TaskExecutorTests {
    @Test("a task that prefers the event loop's executor awaits requests on one thread")
    func oneThread() async throws {
        let server = try LoopbackServer.standard()
        let manager = makeManager()
        let executor = try #require(manager.taskExecutor)
        let url = server.url("/json")
        let threads = try await withTaskExecutorPreference(executor) {
            var threads: Set<UInt> = []
            for _ in 0..<3 {
                threads.insert(currentThread())
                let data = try await manager.request(url).validate().serializingData().value
                #expect(data.count == 60)
            }
            return threads
        }
        #expect(threads.count == 1)
    }

    @Test("after the session's end tasks run on another executor")
    func afterTheEnd() async throws {
        let manager = makeManager()
        let executor = try #require(manager.taskExecutor)
        manager.invalidateAndCancel()
        let error = await Task<(any Error)?, Never>(executorPreference: executor) {
            await manager.request("http://127.0.0.1:1/").serializingData().response.error
        }.value
        #expect(isInvalidated(error))
    }

    @Test("a task that awaits while the session ends continues")
    func duringTheEnd() async throws {
        let manager = makeManager()
        let executor = try #require(manager.taskExecutor)
        let task = Task<(any Error)?, Never>(executorPreference: executor) {
            let request = manager.request("http://192.0.2.1/")
            manager.invalidateAndCancel()
            return await request.serializingData().response.error
        }
        #expect(isInvalidated(await task.value))
    }
}

/// Identifies the current thread.
private func currentThread() -> UInt { UInt(bitPattern: pthread_self().hashValue) }

private func isInvalidated(_ error: (any Error)?) -> Bool {
    if case CurlewError.sessionInvalidated? = error { true } else { false }
}

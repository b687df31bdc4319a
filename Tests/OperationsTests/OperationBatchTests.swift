// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Dispatch
import Testing

@Suite(.timeLimit(.minutes(1))) struct OperationBatchTests {
    @Test("a batch completes after all completion closures, each followed by its progress")
    func order() async throws {
        let server = try LoopbackServer.standard()
        let session = makeSession()
        let log = Log<String>()
        let operations = try (0..<5).map { index in
            let path = index == 3 ? "/reset" : "/bytes/\(index)"
            let operation = try HTTPRequestOperation.make(server.url(path), session: session)
            operation.setCompletionBlock(success: { _, _ in log.append("done") }, failure: { _, _ in log.append("failed") })
            return operation
        }
        let batch = URLConnectionOperation.batchOfRequestOperations(operations) { finished, total in
            log.append("\(finished)/\(total)")
        } completion: { ended in
            log.append("batch \(ended.count) \(ended.allSatisfy(\.isFinished))")
        }
        #expect(batch.count == 6 && batch.last?.dependencies.count == 5)
        makeQueue(2).add(batch)
        await log.wait(for: 11)
        #expect(log.elements.last == "batch 5 true")
        #expect(log.elements.filter { $0.contains("/") } == (1...5).map { "\($0)/5" })
        #expect(log.elements.filter { $0 == "failed" }.count == 1)
        for index in stride(from: 0, to: 10, by: 2) { #expect(["done", "failed"].contains(log.elements[index])) }
    }

    @Test("the batch waits for slow closures, on any queue")
    func slowClosures() async throws {
        let server = try LoopbackServer.standard()
        let operation = try URLConnectionOperation.make(server.url("/json"))
        let (gate, log) = (Gate(), Log<String>())
        operation.completionQueue = DispatchQueue(label: "slow")
        operation.completionBlock = {
            gate.wait()
            log.append("completion")
        }
        let batch = URLConnectionOperation.batchOfRequestOperations([operation], completion: { _ in log.append("batch") })
        makeQueue().add(batch)
        await operation.waitForEnd()
        #expect(await gate.arrivals())
        #expect(log.count == 0)
        gate.open()
        await log.wait(for: 2)
        #expect(log.elements == ["completion", "batch"])
    }

    @Test("the progress only increases, also if closures run on several queues, and the batch completes after it")
    func progressOnSeveralQueues() async throws {
        let server = try LoopbackServer.standard()
        let operations = try (0..<2).map { _ in try URLConnectionOperation.make(server.url("/json")) }
        let second = DispatchQueue(label: "second")
        operations[0].completionQueue = DispatchQueue(label: "first")
        operations[1].completionQueue = second
        let (gate, log, ends) = (Gate(), Log<String>(), Log<Void>())
        operations[1].completionBlock = { ends.append(()) }
        let batch = URLConnectionOperation.batchOfRequestOperations(operations) { finished, _ in
            if finished == 1 { gate.wait() }
            log.append("\(finished)")
        } completion: { _ in
            log.append("batch")
        }
        let queue = makeQueue(1)
        queue.addOperation(batch[0])
        #expect(await gate.arrivals())
        queue.addOperation(batch[1])
        queue.addOperation(batch[2])
        await ends.wait(for: 1)
        // After the closure of the second operation, which has called the one before it.
        await withCheckedContinuation { continuation in second.async { continuation.resume() } }
        #expect(log.count == 0)
        gate.open()
        await log.wait(for: 3)
        #expect(log.elements == ["1", "2", "batch"])
    }

    @Test("cancelled operations are counted, too")
    func cancelled() async throws {
        let server = try LoopbackServer.standard()
        let operations = try (0..<3).map { _ in try URLConnectionOperation.make(server.url("/silent")) }
        let log = Log<Int>()
        let batch = URLConnectionOperation.batchOfRequestOperations(operations, completion: { log.append($0.count) })
        makeQueue(1).add(batch)
        #expect(await server.waitForRequests(1))
        operations[1].pause()
        for operation in operations { operation.cancel() }
        await log.wait(for: 1)
        #expect(log.elements == [3])
        #expect(operations.allSatisfy { $0.urlErrorCode == .cancelled })
    }

    @Test("cancelling all operations of the queue completes the batch, after the closures of its operations")
    func cancelledQueue() async throws {
        let server = try LoopbackServer.standard()
        let log = Log<String>()
        let operations = try (0..<3).map { _ in
            let operation = try HTTPRequestOperation.make(server.url("/silent"))
            operation.setCompletionBlock(success: nil, failure: { _, _ in log.append("failed") })
            return operation
        }
        let batch = URLConnectionOperation.batchOfRequestOperations(operations, completion: { log.append("batch \($0.count)") })
        let queue = makeQueue(1)
        queue.add(batch)
        #expect(await server.waitForRequests(1))
        queue.cancelAllOperations()
        await log.wait(for: 4)
        #expect(log.elements == ["failed", "failed", "failed", "batch 3"])
        #expect(operations.allSatisfy { $0.urlErrorCode == .cancelled })
    }

    @Test("a batch that is never run is released")
    func dropped() throws {
        weak var weakly: URLConnectionOperation?
        do {
            let operation = try URLConnectionOperation.make("http://127.0.0.1/")
            weakly = operation
            _ = URLConnectionOperation.batchOfRequestOperations([operation])
        }
        #expect(weakly == nil)
    }

    @Test("operations that have finished before the batch is made do not block it")
    func finishedAlready() async throws {
        let server = try LoopbackServer.standard()
        let operation = try URLConnectionOperation.make(server.url("/json"))
        try await operation.run()
        let log = Log<Int>()
        let batch = URLConnectionOperation.batchOfRequestOperations([operation], completion: { log.append($0.count) })
        try makeQueue().addOperation(#require(batch.last))
        await log.wait(for: 1)
        #expect(log.elements == [1])
    }

    @Test("an empty batch is one operation that calls the completion")
    func empty() async {
        let count: Int = await withTrackedContinuation { continuation in
            let batch = URLConnectionOperation.batchOfRequestOperations(
                [], callbackQueue: callbackQueue, completion: { continuation.resume(returning: $0.count) })
            #expect(batch.count == 1)
            makeQueue().add(batch)
        }
        #expect(count == 0)
    }
}

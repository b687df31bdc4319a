// SPDX-License-Identifier: Apache-2.0
import CurlewOperations
import DemoServer
import Dispatch

/// 100 files. Every tenth is an index: the nine behind it may be fetched only when it is there.
struct Downloads {
    static let count = 100
    static let length: Int64 = 2_000_000

    /// Two files whose first half the server sends, and no more until it is asked for the rest: one is paused with that half and resumed,
    /// the other archived with it.
    static let held = [5, 25]

    let url: String
    let directory: URL

    /// What makes the files different.
    static func seed(of path: String) -> UInt64 {
        UInt64(path.dropFirst()) ?? 0
    }

    /// What is left of an operation for the next process: which file it is, and the operation itself.
    private struct Unfinished: Codable {
        let index: Int
        let archive: OperationArchive
    }

    private var archiveFile: URL { directory.appendingPathComponent("unfinished.json") }

    private var session: OperationSession {
        var configuration = SessionConfiguration()
        configuration.proxy = .none  // the server is on this machine, whatever the environment says
        configuration.callbackQueue = DispatchQueue(label: "operations")
        return OperationSession(configuration: configuration)
    }

    private func makeQueue() -> OperationQueue {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 4
        return queue
    }

    // MARK: First process

    func begin() async throws {
        let operations = try makeOperations()
        let halves = Self.held.map { Self.arrivals(of: operations[$0]) }
        let queue = makeQueue()
        for operation in operations { queue.addOperation(operation) }

        try await Self.wait(until: operations, haveFinished: 10)
        for await _ in halves[0] {}
        let running = operations.filter(\.isExecuting)
        for operation in running { operation.pause() }
        Program.say("  paused \(running.count) with \(running.map(\.totalBytesRead).reduce(0, +)) bytes between them")
        for operation in running { operation.resume() }

        try await Self.wait(until: operations, haveFinished: 30)
        for await _ in halves[1] {}
        // The queue starts no more, so that what is archived is all there is.
        queue.isSuspended = true
        let unfinished = operations.enumerated().compactMap { index, operation -> Unfinished? in
            let archive = operation.archive()
            return archive.state == .finished ? nil : Unfinished(index: index, archive: archive)
        }
        try JSONEncoder().encode(unfinished).write(to: archiveFile)
        let parts = unfinished.filter { $0.archive.totalBytesRead > 0 }.count
        Program.say(
            "  \(operations.count - unfinished.count) are done; archived \(unfinished.count), \(parts) of them with a part of their file")
        // As it is: the operations end with the process.
        exit(0)
    }

    private func makeOperations() throws -> [HTTPRequestOperation] {
        let session = session
        let operations = try (0..<Self.count).map { index in
            guard let url = URL(string: "\(url)/\(index)") else { throw Program.Misuse() }
            let operation = HTTPRequestOperation(request: URLRequest(url: url))
            operation.session = session
            operation.outputFile = directory.appendingPathComponent("\(index).bin")
            return operation
        }
        for (index, operation) in operations.enumerated() where index % 10 != 0 {
            operation.addDependency(operations[index / 10 * 10])
        }
        return operations
    }

    /// A sequence that ends once half of a file has arrived, or the operation has finished.
    private static func arrivals(of operation: URLConnectionOperation) -> AsyncStream<Int64> {
        let (arrivals, continuation) = AsyncStream.makeStream(of: Int64.self)
        operation.setDownloadProgressBlock { _, total, _ in
            continuation.yield(total)
            if total >= length / 2 { continuation.finish() }
        }
        operation.completionBlock = { continuation.finish() }
        return arrivals
    }

    private static func wait(until operations: [URLConnectionOperation], haveFinished count: Int) async throws {
        await withTaskGroup(of: Void.self) { group in
            for operation in operations {
                group.addTask { for await state in operation.states where state == .finished { return } }
            }
            var finished = 0
            for await _ in group {
                finished += 1
                if finished >= count { break }
            }
            group.cancelAll()
        }
        if let error = operations.compactMap(\.error).first { throw error }
    }

    // MARK: Second process

    func finish() async throws {
        let unfinished = try JSONDecoder().decode([Unfinished].self, from: Data(contentsOf: archiveFile))
        let session = session
        var operations: [Int: HTTPRequestOperation] = [:]
        for item in unfinished {
            let operation = try HTTPRequestOperation(archive: item.archive)
            operation.session = session
            operations[item.index] = operation
        }
        for (index, operation) in operations where index % 10 != 0 {
            // Those whose index is done depend on nothing any more.
            if let first = operations[index / 10 * 10] { operation.addDependency(first) }
        }
        let queue = makeQueue()
        for index in operations.keys.sorted() { if let operation = operations[index] { queue.addOperation(operation) } }
        for operation in operations.values { _ = try await operation.value }
        Program.say("  finished \(operations.count)")
    }
}

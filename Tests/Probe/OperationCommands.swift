// SPDX-License-Identifier: Apache-2.0
import CurlewOperations
import CurlewTestSupport
import Dispatch

extension Probe {
    /// Runs an operation that requests time to end, and waits for termination. Prints "started", "expired" and "ended" at these events. Its
    /// grace period, in seconds, is CURLEW_PROBE_GRACE.
    static func operate(_ url: String) async throws {
        guard let target = URL(string: url) else { throw URLError(.badURL) }
        let grace = ProcessInfo.processInfo.environment["CURLEW_PROBE_GRACE"].flatMap { Double($0) } ?? 10
        BackgroundActivity.shared.gracePeriod = .seconds(grace)
        let operation = URLConnectionOperation(request: URLRequest(url: target))
        operation.session = OperationSession(configuration: makeConfiguration())
        operation.setShouldExecuteAsBackgroundTask { report("expired", 1) }
        operation.completesBeforeDependents = true
        operation.completionBlock = { [unowned operation] in report("ended", operation.error == nil ? 1 : 0) }
        report("started", 1)
        operation.start()
        await operation.waitForEnd()
        report("free", 1)
        _ = readLine()
    }

    /// Runs an operation with an output file, to be killed. Prints "received" when the first bytes have come; pauses at a line of input, and
    /// prints "paused" then.
    static func operate(_ url: String, to file: URL) async throws {
        guard let target = URL(string: url) else { throw URLError(.badURL) }
        let operation = HTTPRequestOperation(request: URLRequest(url: target))
        operation.session = OperationSession(configuration: makeConfiguration())
        operation.outputFile = file
        let (pieces, received) = AsyncStream.makeStream(of: Void.self)
        operation.setDownloadProgressBlock { _, _, _ in received.yield() }
        let (pauses, paused) = AsyncStream.makeStream(of: Void.self)
        // Posted once the connection has ended and the bytes received are written.
        let token = NotificationCenter.default.addObserver(
            forName: URLConnectionOperation.didFinishNotification, object: operation, queue: nil
        ) { _ in paused.yield() }
        defer { NotificationCenter.default.removeObserver(token) }
        operation.start()
        for await _ in pieces { break }
        report("received", 1)
        _ = readLine()
        operation.pause()
        for await _ in pauses { break }
        report("paused", 1)
        _ = readLine()
    }
}

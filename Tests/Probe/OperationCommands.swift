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
}

// SPDX-License-Identifier: Apache-2.0
import Curlew
import Dispatch

/// Slows a transfer down to a rate, on average since its beginning.
struct Pace {
    private let bytesPerSecond: Int64?
    private let start = ContinuousClock.now
    private var bytes: Int64 = 0

    init(_ bytesPerSecond: Int64?) { self.bytesPerSecond = bytesPerSecond }

    mutating func wait(for count: Int) async throws {
        guard let bytesPerSecond else { return }
        bytes += Int64(count)
        let due = start + .seconds(Double(bytes) / Double(bytesPerSecond))
        if due > .now { try await Task.sleep(until: due, clock: .continuous) }
    }
}

/// A body that is read at most at a rate.
final class PacedStream: InputStream {
    private let source: InputStream
    private let bytesPerSecond: Int64
    private let start = ContinuousClock.now
    private var bytes: Int64 = 0

    init(_ source: InputStream, bytesPerSecond: Int64) {
        self.source = source
        self.bytesPerSecond = bytesPerSecond
        super.init(data: Data())
    }

    override func open() { source.open() }
    override func close() { source.close() }
    override var hasBytesAvailable: Bool { true }

    /// Blocks until the bytes are due. Small pieces keep the rate even.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let count = source.read(buffer, maxLength: min(maxLength, max(Int(bytesPerSecond / 10), 1), 64 << 10))
        guard count > 0 else { return count }
        bytes += Int64(count)
        let wait = (start + .seconds(Double(bytes) / Double(bytesPerSecond)) - .now) / .seconds(1)
        if wait > 0 { Thread.sleep(forTimeInterval: wait) }
        return count
    }
}

/// Ends a transfer that is slower than a limit for some time.
final class SpeedWatch: @unchecked Sendable {  // the numbers are guarded by the lock
    private let limit: CurlExtras.SlowLimit
    private let lock = NSLock()
    private var bytes: Int64 = 0
    private var sentBefore: Int64 = 0
    private var slowSince: ContinuousClock.Instant?
    private var hasEnded = false
    private var timer: (any DispatchSourceTimer)?

    private var isExceeded = false

    /// Whether it has ended the transfer.
    var isTooSlow: Bool { lock.withLock { isExceeded } }

    init(_ limit: CurlExtras.SlowLimit, cancel: @escaping @Sendable () -> Void) {
        self.limit = limit
        guard limit.bytesPerSecond > 0 else { return }
        let timer = DispatchSource.makeTimerSource(queue: .global())
        timer.schedule(deadline: .now() + 1, repeating: 1)
        timer.setEventHandler { [weak self] in if self?.check() == true { cancel() } }
        timer.resume()
        self.timer = timer
    }

    /// Counts bytes that were received.
    func count(_ bytes: Int) { lock.withLock { self.bytes += Int64(bytes) } }

    /// Counts bytes of the request's body.
    ///
    /// - Parameter total: all that were sent so far.
    func sent(total: Int64) {
        lock.withLock {
            bytes += max(total - sentBefore, 0)
            sentBefore = total
        }
    }

    /// Looks at the last second.
    private func check() -> Bool {
        lock.withLock {
            defer { bytes = 0 }
            guard !hasEnded, bytes < limit.bytesPerSecond else {
                slowSince = nil
                return false
            }
            let since = slowSince ?? .now - .seconds(1)
            slowSince = since
            isExceeded = ContinuousClock.now - since >= limit.duration
            return isExceeded
        }
    }

    func end() {
        lock.withLock { hasEnded = true }
        timer?.cancel()
    }

    var outcome: Outcome {
        Outcome(
            status: .timeout,
            message:
                "less than \(limit.bytesPerSecond) bytes a second for \(Stopper.number(limit.duration / .seconds(1))) s (--speed-limit)")
    }
}

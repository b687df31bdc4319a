// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A limit of the rate at which bodies are received, shared by the connections of one or more downloads (a token bucket).
///
/// The rate holds on average; after a pause a quarter of a second's bytes may come at once. Connections have buffers, in the library up to
/// 1 MiB each, which fill before a limit slows the server down. Thread-safe.
public final class DownloadRateLimit: Sendable {
    /// The rate in bytes per second.
    public let bytesPerSecond: Int64
    /// When all bytes so far are paid for.
    private let paid: Lock<ContinuousClock.Instant>

    /// Creates a limit.
    ///
    /// - Parameter bytesPerSecond: at least 1; less counts as 1.
    public init(bytesPerSecond: Int64) {
        self.bytesPerSecond = max(bytesPerSecond, 1)
        paid = Lock(.now)
    }

    /// The number of bytes that are taken at once, so that a slow rate is an even one.
    var pieceSize: Int { Int(min(max(bytesPerSecond / 10, 1), 64 << 10)) }

    /// Takes bytes; returns how long to wait for them.
    func reserve(_ count: Int, now: ContinuousClock.Instant = .now) -> Duration {
        let price = Duration.seconds(Double(count) / Double(bytesPerSecond))
        return paid.withLock { paid in
            paid = max(paid, now - .milliseconds(250)) + price
            return max(paid - now, .zero)
        }
    }

    /// Takes bytes, and waits for them.
    func take(_ count: Int) async throws {
        let wait = reserve(count)
        if wait > .milliseconds(1) { try await Task.sleep(for: wait) }
    }
}

// SPDX-License-Identifier: Apache-2.0

/// A delay before another attempt of a transfer that continues where it was interrupted: for `onWait` of a `SegmentedDownload` and of a
/// `ResumableUpload`.
public struct RetryWait: Sendable {
    /// What the last attempt has failed with.
    public let error: any Error
    /// The number of failures in a row, 1 for the first.
    public let failures: Int
    /// The delay.
    public let delay: Duration
    /// Whether the delay is waited for; if not, because it is too long or ends after the deadline, that server is not asked again, and
    /// without another one the transfer fails with the error.
    public let isWaited: Bool

    package init(error: any Error, failures: Int, delay: Duration, isWaited: Bool) {
        self.error = error
        self.failures = failures
        self.delay = delay
        self.isWaited = isWaited
    }
}

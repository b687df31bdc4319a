// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The options of transfers with what is worked out of them: shared by all transfers of a session, so that it is done once.
package final class PreparedOptions: Sendable {
    package let options: TransferOptions
    let limits: TimeLimits
    /// As libcurl takes it.
    let connectTimeoutMilliseconds: Int

    package init(_ options: TransferOptions) {
        self.options = options
        limits = TimeLimits(options)
        connectTimeoutMilliseconds = options.connectTimeout?.atLeastOneMillisecond ?? Int(Int32.max)
    }

    /// The defaults.
    static let standard = PreparedOptions(TransferOptions())
}

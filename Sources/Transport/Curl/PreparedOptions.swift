// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The options of transfers together with the values derived from them; shared by a session's transfers, so that these are computed once.
package final class PreparedOptions: Sendable {
    package let options: TransferOptions
    let limits: TimeLimits
    /// The connect timeout in libcurl's unit.
    let connectTimeoutMilliseconds: Int

    package init(_ options: TransferOptions) {
        self.options = options
        limits = TimeLimits(options)
        connectTimeoutMilliseconds = options.connectTimeout?.atLeastOneMillisecond ?? Int(Int32.max)
    }

    /// The defaults.
    static let standard = PreparedOptions(TransferOptions())
}

// SPDX-License-Identifier: Apache-2.0
@_exported import CurlewCore
@_exported import CurlewHTTP

extension Duration {
    /// The duration in seconds.
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}

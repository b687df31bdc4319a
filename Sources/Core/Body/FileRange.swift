// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// A range of an open file that is a piece of a body; valid during the call that has it.
struct FileRange {
    let descriptor: Int32
    /// The offset of its first byte in the file.
    let offset: Int64
    /// The number of bytes.
    let count: Int64
}

/// An observer that may take a body from a file: to one of its own without reading it, or to where it stays in memory.
protocol FileRangeObserver: TransferObserver {
    /// A range of a stored body is next. The observer takes as many of its first bytes as can be taken without delaying others.
    ///
    /// - Returns: the number of bytes and what the transfer does; `nil` if the observer wants bytes in memory, or has failed to take these.
    func transfer(_ id: Int, didReceive range: FileRange) -> (count: Int64, action: ReceiveAction)?
}

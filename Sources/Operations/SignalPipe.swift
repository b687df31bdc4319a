// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Brings signals from their handler, in which next to nothing is allowed, to a queue.
///
/// Not a dispatch source for signals: on Linux that installs a handler of its own, at a time of its own choosing and for good.
enum SignalPipe {
    /// Written before any handler is installed, and never again.
    nonisolated(unsafe) private static var writeEnd: Int32 = -1
    private static let source = Lock<(any DispatchSourceRead)?>(nil)

    /// Has signals told on a queue from now on; `false` where the system gives no pipe. Again does nothing.
    static func open(on queue: DispatchQueue, _ received: @escaping @Sendable (Int32) -> Void) -> Bool {
        source.withLock { source in
            if source != nil { return true }
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { return false }
            for end in ends {
                _ = fcntl(end, F_SETFD, FD_CLOEXEC)
                _ = fcntl(end, F_SETFL, O_NONBLOCK)
            }
            writeEnd = ends[1]
            let reader = DispatchSource.makeReadSource(fileDescriptor: ends[0], queue: queue)
            reader.setEventHandler { [end = ends[0]] in
                var signal: UInt8 = 0
                while read(end, &signal, 1) == 1 { received(Int32(signal)) }
            }
            reader.resume()
            source = reader
            return true
        }
    }

    /// Has a signal go into the pipe.
    static func take(_ signal: Int32) {
        Foundation.signal(signal) { signal in
            let before = errno
            var byte = UInt8(truncatingIfNeeded: signal)
            _ = write(SignalPipe.writeEnd, &byte, 1)
            errno = before
        }
    }
}

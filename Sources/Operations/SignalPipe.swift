// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Forwards signals to a queue from their handler, in which only async-signal-safe calls are allowed.
///
/// A dispatch source is not used, because on Linux it installs its own handler, at an unspecified time and permanently.
enum SignalPipe {
    /// Written once, before any handler is installed.
    nonisolated(unsafe) private static var writeEnd: Int32 = -1
    private static let source = Lock<(any DispatchSourceRead)?>(nil)

    /// Starts to deliver signals on a queue; `false` if the system provides no pipe. Calling it again does nothing.
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

    /// Installs the handler that writes a signal into the pipe.
    static func install(_ signal: Int32) {
        Foundation.signal(signal) { signal in
            let before = errno
            var byte = UInt8(truncatingIfNeeded: signal)
            _ = write(SignalPipe.writeEnd, &byte, 1)
            errno = before
        }
    }
}

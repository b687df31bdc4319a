// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A descriptor for output.
struct Output: Sendable {
    /// Why output has failed.
    enum Failure: Error, Equatable {
        /// The reader has closed its end.
        case closed
        /// The system's error code.
        case failed(Int32)

        /// The system's error code.
        var code: Int32 {
            switch self {
            case .closed: EPIPE
            case .failed(let code): code
            }
        }
    }

    static let standard = Output(descriptor: 1)
    static let error = Output(descriptor: 2)

    let descriptor: Int32

    /// Whether a person reads it, also by a pager.
    var isTerminal: Bool { isatty(descriptor) == 1 || descriptor == 1 && Pager.terminalWidth != nil }

    /// Writes all bytes; blocks until done.
    func write(_ bytes: some ContiguousBytes) throws(Failure) {
        let failure: Failure? = bytes.withUnsafeBytes { bytes in
            var rest = bytes
            while !rest.isEmpty {
                let count = systemWrite(descriptor, rest)
                if count >= 0 {
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno == EAGAIN {
                    waitUntilWritable()
                } else if errno != EINTR {
                    return errno == EPIPE ? .closed : .failed(errno)
                }
            }
            return nil
        }
        if let failure { throw failure }
    }

    /// Writes a line with control characters escaped. Errors are ignored, because a failing standard error can't be reported.
    func note(_ line: String) {
        try? write(Data("\(SafeText.escaped(line))\n".utf8))
    }

    /// Needed because another process may have made the descriptor non-blocking.
    private func waitUntilWritable() {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&entry, 1, -1)
    }
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int { write(descriptor, bytes.baseAddress, bytes.count) }

extension Output {
    /// The width of the terminal in columns; `nil` if it is none, or does not tell.
    var width: Int? {
        if descriptor == 1, let width = Pager.terminalWidth { return width }
        var size = winsize()
        guard isTerminal, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }
}

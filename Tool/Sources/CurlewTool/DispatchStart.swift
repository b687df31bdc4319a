// SPDX-License-Identifier: Apache-2.0
import Curlew
import Dispatch

/// The start of libdispatch, on which Swift's tasks run too. It opens descriptors on first use, and traps if the system refuses one, or
/// later if it can't read a file in /proc. Therefore spare descriptors are checked for, and libdispatch is made to open its own before any
/// work starts, while the trap can be turned into an error.
enum DispatchStart {
    private static let traps = [SIGILL, SIGTRAP]
    /// How long an immediate timer may take. Without a descriptor for timers, libdispatch silently never fires them.
    private static let limit = DispatchTimeInterval.seconds(10)
    /// Those of libdispatch and of one transfer to a file, plus a spare one.
    private static let descriptorCount = 12

    /// Starts libdispatch, or exits with ``ExitStatus/other`` after writing the reason.
    static func run() {
        let spare = (0..<descriptorCount).map { _ in open("/", O_RDONLY | O_CLOEXEC) }
        for descriptor in spare where descriptor >= 0 { close(descriptor) }
        if spare.contains(where: { $0 < 0 }) {
            fail("curlew: can't start: fewer than 12 file descriptors are available; raise the limit with ulimit -n\n")
        }
        // After the check, as it opens a file.
        Platform.beginTLS()
        for number in traps { signal(number) { _ in DispatchStart.failForDispatch() } }
        let timer = DispatchSemaphore(value: 0)
        DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(1)) { timer.signal() }
        if timer.wait(timeout: .now() + limit) == .timedOut { failForDispatch() }
        for number in traps { signal(number, SIG_DFL) }
    }

    /// Also called as a signal handler: this and its callees are async-signal-safe.
    private static func failForDispatch() {
        fail("curlew: can't start: libdispatch lacks descriptors, threads or memory; see the limits with ulimit -a\n")
    }

    private static func fail(_ message: StaticString) -> Never {
        _ = write(2, message.utf8Start, message.utf8CodeUnitCount)
        _exit(ExitStatus.other.rawValue)
    }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew
import Dispatch

/// The start of libdispatch, on which Swift's tasks run too: it opens descriptors of its own at its first use, and ends the process with
/// a trap where the system refuses one, as it does later when it can't read a file in /proc. So there must be some to spare, and it is
/// made to open its own before there is any work, while the trap can be turned into an error.
enum DispatchStart {
    private static let traps = [SIGILL, SIGTRAP]
    /// How long a timer that is due at once may take. libdispatch has none where it gets no descriptor for it, and does not say so.
    private static let limit = DispatchTimeInterval.seconds(10)
    /// libdispatch's own and those of one transfer to a file, with one to spare.
    private static let descriptorCount = 12

    /// Starts libdispatch, or ends the process with ``ExitStatus/other`` and a line that says why.
    static func run() {
        let spare = (0..<descriptorCount).map { _ in open("/", O_RDONLY | O_CLOEXEC) }
        for descriptor in spare where descriptor >= 0 { close(descriptor) }
        if spare.contains(where: { $0 < 0 }) {
            refuse("curlew: can't start: the system refuses file descriptors (ulimit -n), a dozen of which are needed\n")
        }
        for number in traps { signal(number) { _ in DispatchStart.refuseForDispatch() } }
        let timer = DispatchSemaphore(value: 0)
        DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(1)) { timer.signal() }
        if timer.wait(timeout: .now() + limit) == .timedOut { refuseForDispatch() }
        for number in traps { signal(number, SIG_DFL) }
    }

    /// Also called as a signal handler: it and what it calls do only what one may do.
    private static func refuseForDispatch() {
        refuse("curlew: can't start: the system refuses libdispatch what it needs: descriptors, threads or memory (ulimit -a)\n")
    }

    private static func refuse(_ message: StaticString) -> Never {
        _ = write(2, message.utf8Start, message.utf8CodeUnitCount)
        _exit(ExitStatus.other.rawValue)
    }
}

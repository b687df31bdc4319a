// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The process's event loop threads, tracked so that none runs while the process exits.
///
/// If OpenSSL was used before Curlew was loaded (`keep_openssl` in CCurlew.c), `exit` runs OpenSSL's clean-up while other threads are
/// running: a loop that uses OpenSSL at that moment, or frees OpenSSL's objects, accesses freed memory. An exit handler that runs before it
/// therefore parks each loop at a safe point, and waits for those that are ending.
enum LiveThreads {
    private struct State {
        var running: [ObjectIdentifier: Mailbox] = [:]
        var hasExitHandler = false
    }

    /// The longest time that an exit is delayed: a loop never blocks for long, unless a disk does.
    private static let longestWait: Nanoseconds = 2_000_000_000

    private static let state = Lock(State())

    /// Registers a thread that is about to use libcurl, which must be initialized: exit handlers run in the reverse order of their
    /// registration, and this one has to run before OpenSSL's.
    static func started(_ mailbox: Mailbox) {
        let isFirst = state.withLock { state in
            state.running[ObjectIdentifier(mailbox)] = mailbox
            defer { state.hasExitHandler = true }
            return !state.hasExitHandler
        }
        if isFirst { atexit { LiveThreads.parkAll() } }
    }

    /// Removes a thread that has released its objects or is parked.
    static func ended(_ mailbox: Mailbox) {
        state.withLock { $0.running[ObjectIdentifier(mailbox)] = nil }
    }

    /// Parks the calling thread for the rest of the process's life.
    static func park(_ mailbox: Mailbox) -> Never {
        ended(mailbox)
        while true { pause() }
    }

    private static func parkAll() {
        let deadline = MonotonicTime.now() + longestWait
        var asked: Set<ObjectIdentifier> = []
        while MonotonicTime.now() < deadline {
            let running = state.withLock { $0.running }
            guard !running.isEmpty else { return }
            for (id, mailbox) in running where asked.insert(id).inserted { mailbox.parkAtExit() }
            // Polled each millisecond, which is short compared to a process's exit: a thread that blocks here can't be notified.
            poll(nil, 0, 1)
        }
    }
}

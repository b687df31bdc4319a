// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The event loops' threads of the process, so that none of them meets its end.
///
/// `exit` runs OpenSSL's clean-up while other threads go on: a loop that uses OpenSSL at that moment, or lets go of what it holds of it,
/// works on freed memory. So before that, at exit, each loop is put to rest where it harms nobody, and those that are ending are
/// waited for.
enum LiveThreads {
    private struct State {
        var running: [ObjectIdentifier: Mailbox] = [:]
        var hasExitHandler = false
    }

    /// What an exit waits at the most: a loop never blocks for long, unless a disk does.
    private static let longestWait: Nanoseconds = 2_000_000_000

    private static let state = Lock(State())

    /// A thread is about to use libcurl, which has been initialised: exit handlers run in the reverse order of their registration, and
    /// ours has to come before OpenSSL's.
    static func started(_ mailbox: Mailbox) {
        let isFirst = state.withLock { state in
            state.running[ObjectIdentifier(mailbox)] = mailbox
            defer { state.hasExitHandler = true }
            return !state.hasExitHandler
        }
        if isFirst { atexit { LiveThreads.restAll() } }
    }

    /// A thread has let go of everything, or does nothing any more.
    static func ended(_ mailbox: Mailbox) {
        state.withLock { $0.running[ObjectIdentifier(mailbox)] = nil }
    }

    /// Stays here for the rest of the process's life.
    static func rest(_ mailbox: Mailbox) -> Never {
        ended(mailbox)
        while true { pause() }
    }

    private static func restAll() {
        let deadline = MonotonicTime.now() + longestWait
        var asked: Set<ObjectIdentifier> = []
        while MonotonicTime.now() < deadline {
            let running = state.withLock { $0.running }
            guard !running.isEmpty else { return }
            for (id, mailbox) in running where asked.insert(id).inserted { mailbox.restAtExit() }
            // A millisecond: short beside what a process takes to end, and nobody can be told in an exit handler.
            poll(nil, 0, 1)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

/// The body of a new thread; alive until it has run.
package final class ThreadBody: Sendable {
    package let name: String
    private let body: @Sendable () -> Void

    package init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }

    package func run() {
        body()
    }
}

/// A POSIX thread with a small stack, which must be joined or detached exactly once.
package struct WorkerThread: @unchecked Sendable {  // `id`, a pointer on Darwin, is only ever handed back to pthread functions
    private let id: Platform.ThreadID

    /// Starts `body`; nil if the system can't create another thread.
    ///
    /// The stack has 512 KiB, like the threads of Swift concurrency: enough for Foundation, and only touched pages use memory.
    package init?(name: String, body: @escaping @Sendable () -> Void) {
        var attributes = pthread_attr_t()
        guard pthread_attr_init(&attributes) == 0 else { return nil }
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, 512 << 10)
        let retained = Unmanaged.passRetained(ThreadBody(name: name, body: body))
        guard let id = Platform.startThread(attributes: &attributes, argument: retained.toOpaque()) else {
            retained.release()
            return nil
        }
        self.id = id
    }

    /// Whether this is the calling thread.
    package var isCurrent: Bool { Platform.isThisThread(id) }

    /// Waits for the thread's end. Called on the thread itself it lets it go instead, as nothing could wait for that.
    package func join() {
        if isCurrent { Platform.detach(id) } else { Platform.join(id) }
    }

    /// Lets the thread run on alone.
    package func detach() {
        Platform.detach(id)
    }
}

/// Runs blocking work on a thread of its own, so that no thread of Swift's concurrency is held up meanwhile.
package func offThePool<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withTrackedContinuation { continuation in
        let thread = WorkerThread(name: "waiter") { continuation.resume(returning: work()) }
        guard let thread else { return continuation.resume(returning: work()) }
        thread.detach()
    }
}

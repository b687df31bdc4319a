// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An operating system thread; Foundation's `Thread` is not in FoundationEssentials.
enum Thread {
    private final class Body {
        let run: @Sendable () -> Bool
        init(_ run: @escaping @Sendable () -> Bool) { self.run = run }
    }

    /// A thread, by which another one waits for its end.
    struct Handle: @unchecked Sendable {  // the system's handle, which is for any thread
        fileprivate let thread: pthread_t

        /// Waits until the thread has ended; once.
        func join() {
            pthread_join(thread, nil)
        }
    }

    /// The least size of a thread's stack, in bytes: tasks may run here, and decoding JSON of 512 levels takes more than the 512 KiB or
    /// less that musl gives a thread.
    private static let leastStackSize = 2 << 20

    /// The calling thread.
    static var current: Handle { Handle(thread: pthread_self()) }

    /// Starts a thread; returns the system's error number on failure. The body returns whether the thread is joined.
    static func start(_ body: @escaping @Sendable () -> Bool) -> Int32? {
        let context = Unmanaged.passRetained(Body(body))
        #if canImport(Darwin)
        var thread: pthread_t?
        #else
        var thread = pthread_t()
        #endif
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        var stackSize = 0
        pthread_attr_getstacksize(&attributes, &stackSize)
        if stackSize < leastStackSize { pthread_attr_setstacksize(&attributes, leastStackSize) }
        let code = pthread_create(&thread, &attributes, threadMain, context.toOpaque())
        guard code != 0 else { return nil }
        context.release()
        return code
    }

    /// Blocks SIGPIPE in the calling thread.
    static func blockPipeSignal() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    fileprivate static func run(_ context: UnsafeMutableRawPointer) {
        if !Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() { pthread_detach(pthread_self()) }
    }
}

#if canImport(Darwin)
private let threadMain: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? = { context in
    Thread.run(context)
    return nil
}
#else
private let threadMain: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
    if let context { Thread.run(context) }
    return nil
}
#endif

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
        let code = pthread_create(&thread, nil, threadMain, context.toOpaque())
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

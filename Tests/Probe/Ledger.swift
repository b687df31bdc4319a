// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import Dispatch

/// Counts what a run creates and what remains afterwards: handlers, objects, threads, descriptors.
final class Ledger: Sendable {
    private struct Weak: @unchecked Sendable {  // weak references are read and cleared atomically
        weak var object: AnyObject?
    }

    private struct Counts {
        /// The number of calls of each handler.
        var calls: [Int: Int] = [:]
        var expected = 0
        var objects: [Weak] = []
    }

    /// The queue on which handlers run.
    let queue = DispatchQueue(label: "probe.handlers")
    private let counts = Lock(Counts())
    private let handlers = DispatchGroup()
    private let before = Lock((threads: 0, descriptors: 0))

    /// Records the threads and descriptors that exist before the run; call it after a warm-up.
    func begin() {
        before.withLock { $0 = (ProcessProbe.threadCount ?? 0, ProcessProbe.openDescriptorCount ?? 0) }
    }

    func watch(_ objects: AnyObject...) {
        counts.withLock { $0.objects += objects.map { Weak(object: $0) } }
    }

    /// Returns a closure that a handler must call exactly once.
    func expectHandler() -> @Sendable () -> Void {
        handlers.enter()
        let number = counts.withLock { counts in
            counts.expected += 1
            return counts.expected
        }
        return { [self] in
            let isFirst = counts.withLock { counts in
                counts.calls[number, default: 0] += 1
                return counts.calls[number] == 1
            }
            if isFirst { handlers.leave() }
        }
    }

    func handlersEnd() async {
        await withTrackedContinuation { continuation in
            handlers.notify(queue: queue) { continuation.resume() }
        }
    }

    /// Prints the counts of what existed and what remains, once these have settled.
    func report() {
        let (threads, descriptors) = before.withLock { $0 }
        _ = ProcessProbe.settles { counts.withLock { $0.objects.allSatisfy { $0.object == nil } } }
        _ = ProcessProbe.settles { ProcessProbe.openDescriptorCount ?? 0 <= descriptors }
        _ = ProcessProbe.settles { ProcessProbe.threadCount ?? 0 <= threads }
        Probe.report("threadsBefore", threads)
        Probe.report("threadsAfter", ProcessProbe.threadCount)
        Probe.report("descriptorsBefore", descriptors)
        Probe.report("descriptorsAfter", ProcessProbe.openDescriptorCount)
        counts.withLock { counts in
            Probe.report("expected", counts.expected)
            Probe.report("called", counts.calls.values.reduce(0, +))
            Probe.report("once", counts.calls.values.count { $0 == 1 })
            Probe.report("alive", counts.objects.count { $0.object != nil })
            Probe.report("objects", counts.objects.count)
        }
        Probe.report("peak", ProcessProbe.peakResidentBytes)
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewOperations

@Suite(.timeLimit(.minutes(1)), .serialized) struct OperationMonitorTests {
    // MARK: Activity

    /// Delays that end when the test ends them.
    private final class Delays: Sendable {
        let waiting = Lock<[@Sendable () -> Void]>([])
        let seconds = Log<TimeInterval>()

        func add(_ delay: TimeInterval, _ work: @escaping @Sendable () -> Void) {
            seconds.append(delay)
            waiting.withLock { $0.append(work) }
        }

        func end() {
            let works = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for work in works { work() }
        }
    }

    @Test("the indicator is shown at once, hidden after a delay, and does not flicker")
    func activity() {
        let delays = Delays()
        let monitor = NetworkActivityMonitor { delays.add($0, $1) }
        let log = Log<Bool>()
        monitor.setVisibilityChangeBlock { log.append($0) }
        monitor.incrementActivityCount()
        #expect(monitor.isNetworkActivityIndicatorVisible)
        monitor.decrementActivityCount()
        monitor.incrementActivityCount()
        delays.end()
        #expect(log.elements == [true])
        monitor.decrementActivityCount()
        #expect(monitor.isNetworkActivityIndicatorVisible)
        delays.end()
        #expect(log.elements == [true, false] && delays.seconds.elements == [0.17, 0.17])
        monitor.decrementActivityCount()
        delays.end()
        #expect(!monitor.isNetworkActivityIndicatorVisible)
    }

    @Test("the closure learns of each change after the one before, also if another thread causes it")
    func orderOfChanges() {
        let delays = Delays()
        let monitor = NetworkActivityMonitor { delays.add($0, $1) }
        let log = Log<Bool>()
        let (begun, mayEnd, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        monitor.setVisibilityChangeBlock { isVisible in
            if isVisible {
                begun.signal()
                mayEnd.wait()
            }
            log.append(isVisible)
        }
        Thread {
            monitor.incrementActivityCount()
            ended.signal()
        }.start()
        begun.wait()
        monitor.decrementActivityCount()
        delays.end()
        #expect(!monitor.isNetworkActivityIndicatorVisible && log.elements.isEmpty)
        mayEnd.signal()
        ended.wait()
        #expect(log.elements == [true, false])
    }

    @Test("a closure that was replaced is not called with a change that was due, nor is the one in its place")
    func replacedClosure() {
        let delays = Delays()
        let monitor = NetworkActivityMonitor { delays.add($0, $1) }
        let (log, later) = (Log<Bool>(), Log<Bool>())
        monitor.setVisibilityChangeBlock { [weak monitor] isVisible in
            log.append(isVisible)
            guard isVisible, let monitor else { return }
            monitor.decrementActivityCount()
            delays.end()
            monitor.setVisibilityChangeBlock { later.append($0) }
        }
        monitor.incrementActivityCount()
        #expect(!monitor.isNetworkActivityIndicatorVisible && log.elements == [true] && later.elements.isEmpty)
        monitor.incrementActivityCount()
        #expect(log.elements == [true] && later.elements == [true])
        monitor.setVisibilityChangeBlock(nil)
        monitor.decrementActivityCount()
        delays.end()
        #expect(!monitor.isNetworkActivityIndicatorVisible && log.elements == [true] && later.elements == [true])
    }

    @Test("operations are counted while the monitor is enabled")
    func activityOfOperations() async throws {
        let server = try LoopbackServer.standard()
        let delays = Delays()
        let monitor = NetworkActivityMonitor { delays.add($0, $1) }
        monitor.isEnabled = true
        var visibility = monitor.visibility.makeAsyncIterator()
        let operation = try URLConnectionOperation.make(server.url("/silent"))
        operation.start()
        #expect(await visibility.next() == true)
        operation.pause()
        await delays.seconds.wait(for: 1)
        operation.cancel()
        await operation.waitForEnd()
        monitor.isEnabled = false
    }

    // MARK: Reachability

    private final class Network: NetworkPathProvider {
        private let state = Lock<(path: NetworkPath?, watcher: AsyncStream<Void>.Continuation?)>((nil, nil))

        init(_ path: NetworkPath?) { state.withLock { $0.path = path } }

        func currentPath() -> NetworkPath? { state.withLock { $0.path } }

        func changes() -> AsyncStream<Void>? {
            let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
            state.withLock { $0.watcher = continuation }
            return stream
        }

        func change(to path: NetworkPath?) {
            let watcher = state.withLock { state in
                state.path = path
                return state.watcher
            }
            watcher?.yield()
        }
    }

    @Test("the status is unknown until monitoring starts; it and each change go to the closure and the notification")
    func reachability() async throws {
        let network = Network(NetworkPath(interface: "eth0"))
        let monitor = ReachabilityMonitor(provider: network, queue: callbackQueue)
        let (log, notified) = (Log<ReachabilityMonitor.Status>(), Log<Int>())
        let token = NotificationCenter.default.addObserver(
            forName: ReachabilityMonitor.didChangeNotification, object: nil, queue: nil
        ) { [weak monitor] notification in
            guard let sender = notification.object as? ReachabilityMonitor, sender === monitor else { return }
            notified.append((notification.userInfo?[ReachabilityMonitor.statusKey] as? ReachabilityMonitor.Status)?.rawValue ?? -7)
        }
        defer { NotificationCenter.default.removeObserver(token) }
        monitor.setReachabilityStatusChangeBlock { log.append($0) }
        #expect(monitor.status == .unknown && !monitor.isReachable)
        monitor.startMonitoring()
        await log.wait(for: 1)
        #expect(monitor.isReachableViaWiFi && monitor.isReachable)
        network.change(to: NetworkPath(interface: "wwan0"))
        await log.wait(for: 2)
        #expect(monitor.isReachableViaWWAN)
        network.change(to: NetworkPath(interface: nil))
        await log.wait(for: 3)
        monitor.stopMonitoring()
        #expect(!monitor.isReachable)
        await notified.wait(for: 3)
        #expect(log.elements.map(\.rawValue) == [2, 1, 0] && notified.elements == [2, 1, 0])
        #expect(ReachabilityMonitor(domain: "") == nil)
        for other in [ReachabilityMonitor(domain: "127.0.0.1"), ReachabilityMonitor(domain: "localhost"), .shared] {
            #expect(other?.status == .unknown)
        }
    }
}

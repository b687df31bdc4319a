// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Kinds of events of which an ``EventMonitor`` is told.
public struct MonitoredEvents: OptionSet, Sendable, Hashable {
    /// One bit for each kind.
    public let rawValue: UInt16

    /// Creates a set from its bits.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// A task was created, or an attempt has completed.
    public static let attempts = MonitoredEvents(rawValue: 1 << 0)
    /// A request was resumed, suspended or cancelled.
    public static let control = MonitoredEvents(rawValue: 1 << 1)
    /// The head of a response was received, or a follow-up is sent.
    public static let responses = MonitoredEvents(rawValue: 1 << 2)
    /// An exchange has completed.
    public static let exchanges = MonitoredEvents(rawValue: 1 << 3)
    /// The cache was used or bypassed.
    public static let cache = MonitoredEvents(rawValue: 1 << 4)
    /// A request will be retried.
    public static let retries = MonitoredEvents(rawValue: 1 << 5)
    /// A request has failed for good.
    public static let failures = MonitoredEvents(rawValue: 1 << 6)
    /// A request has finished.
    public static let end = MonitoredEvents(rawValue: 1 << 7)
    /// A connection was opened, reused, became idle, or was closed.
    public static let connections = MonitoredEvents(rawValue: 1 << 8)

    /// All kinds, those of later versions included.
    public static let all = MonitoredEvents(rawValue: .max)
}

/// The monitors of a session: those of its configuration and of its instruments.
struct SessionMonitors: Sendable {
    private let monitors: [(events: MonitoredEvents, monitor: any EventMonitor)]
    /// The events of which one of them is told.
    let events: MonitoredEvents

    init(_ configuration: SessionConfiguration) {
        let all = configuration.eventMonitors + configuration.instruments.compactMap(\.eventMonitor)
        monitors = all.map { ($0.monitoredEvents, $0) }
        events = monitors.reduce([]) { $0.union($1.events) }
    }

    /// The monitors that are told of these events.
    func monitors(of events: MonitoredEvents) -> [any EventMonitor] {
        monitors.filter { $0.events.contains(events) }.map(\.monitor)
    }
}

extension Session {
    /// Notifies the monitors of an event of a request, on the session's queue and in the request's context.
    func tellMonitors(of request: Request, _ kind: MonitoredEvents, _ event: @escaping @Sendable (any EventMonitor) -> Void) {
        var monitors = monitors.monitors(of: kind)
        if let layerMonitor { monitors.append(layerMonitor) }
        guard !monitors.isEmpty else { return }
        queue.async { [driver = request.driver, monitors] in
            driver.inContext {
                for monitor in monitors { event(monitor) }
            }
        }
    }

    /// Notifies the monitors of what happens to connections.
    func observeConnections() {
        guard let eventLoop, monitors.events.contains(.connections) else { return }
        eventLoop.observeConnections { [queue, monitors = monitors.monitors(of: .connections)] event in
            queue.async {
                for monitor in monitors { monitor.connectionDidChange(event) }
            }
        }
    }

    /// Whether monitors are told of events of that kind.
    func isMonitored(_ kind: MonitoredEvents) -> Bool { monitors.events.contains(kind) || layerMonitor != nil }

    private var layerMonitor: (any EventMonitor)? { configuration.tellsLayerMonitor ? LayerMonitor.registered : nil }
}

// MARK: - The monitor of a layer

/// The monitor that a layer above has registered in the process, for sessions whose ``SessionConfiguration/tellsLayerMonitor`` is set.
///
/// Not a part of the session: a subclass of ``SessionManager`` calls Core's initializers, which a layer cannot replace.
package enum LayerMonitor {
    private static let monitor = Lock<(any EventMonitor)?>(nil)

    static var registered: (any EventMonitor)? { monitor.withLock { $0 } }

    /// Registers a monitor, also for sessions that exist.
    package static func register(_ monitor: any EventMonitor) {
        self.monitor.withLock { $0 = monitor }
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport
import Dispatch

/// The monitors of a session: those of its configuration and of its instruments.
struct SessionMonitors: Sendable {
    private let monitors: [(events: MonitoredEvents, monitor: any EventMonitor)]
    /// The events of which at least one of them is notified.
    let events: MonitoredEvents

    init(_ configuration: SessionConfiguration) {
        let all = configuration.eventMonitors + configuration.instruments.compactMap(\.eventMonitor)
        monitors = all.map { ($0.monitoredEvents, $0) }
        events = monitors.reduce([]) { $0.union($1.events) }
    }

    /// The monitors that are notified of these events.
    func monitors(of events: MonitoredEvents) -> [any EventMonitor] {
        monitors.filter { $0.events.contains(events) }.map(\.monitor)
    }
}

extension SessionConfiguration {
    /// Whether monitors are notified of connections, for which the session needs a transport on libcurl of its own.
    package var followsConnections: Bool { SessionMonitors(self).events.contains(.connections) }
}

extension Session {
    /// Notifies the monitors of an event of a request, on the session's queue and in the request's context.
    func notifyMonitors(of request: Request, _ kind: MonitoredEvents, _ event: @escaping @Sendable (any EventMonitor) -> Void) {
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
        guard let eventLoop = eventLoop as? CurlTransport, monitors.events.contains(.connections) else { return }
        eventLoop.observeConnections { [queue, monitors = monitors.monitors(of: .connections)] event in
            queue.async {
                for monitor in monitors { monitor.connectionDidChange(event) }
            }
        }
    }

    /// Whether monitors are notified of events of that kind.
    func isMonitored(_ kind: MonitoredEvents) -> Bool {
        monitors.events.contains(kind) || configuration.notifiesLayerMonitor && LayerMonitor.registered != nil
    }

    private var layerMonitor: (any EventMonitor)? { configuration.notifiesLayerMonitor ? LayerMonitor.registered : nil }
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

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The events of one run, for the accessories that it began with: each event reaches all of them before the next one reaches any.
///
/// An event that is posted while an accessory is being notified, by that accessory or by another thread, is delivered afterwards by the
/// thread that is notifying. So a stop during `requestWillStart`, or beside it, comes after every `requestWillStart`.
final class RunEvents: Sendable {
    enum Event {
        case willStart
        case willStop
        case didStop
    }

    private let accessories: [any RequestAccessory]
    /// The events that the notifying thread has yet to deliver; `nil` while no thread is notifying.
    private let waiting = Lock<[Event]?>([.willStart])

    /// Until ``begin(_:)``, which the thread that starts has to call, all events wait.
    init(_ accessories: [any RequestAccessory]) {
        self.accessories = accessories
    }

    /// Notifies of the start.
    func begin(_ request: any RunnableRequest) {
        deliver(request)
    }

    func post(_ event: Event, _ request: any RunnableRequest) {
        let isNotifying = waiting.withLock { waiting in
            defer { waiting = (waiting ?? []) + [event] }
            return waiting != nil
        }
        if !isNotifying { deliver(request) }
    }

    private func deliver(_ request: any RunnableRequest) {
        while let event = next() {
            for accessory in accessories {
                switch event {
                case .willStart: accessory.requestWillStart(request)
                case .willStop: accessory.requestWillStop(request)
                case .didStop: accessory.requestDidStop(request)
                }
            }
        }
    }

    private func next() -> Event? {
        waiting.withLock { waiting in
            guard waiting?.isEmpty == false else {
                waiting = nil
                return nil
            }
            return waiting?.removeFirst()
        }
    }
}

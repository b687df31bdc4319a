// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// What a maker of requests has beside the parameters of the function that a subclass of ``SessionManager`` may have overridden: it reaches
/// the original of that function around the override, so that an override sees requests with an interceptor and options, too.
struct Handover: Sendable {
    @TaskLocal static var current: Handover?

    private let manager: ObjectIdentifier
    let settings: RequestSettings?
    /// The file of a download, for which the override gets a closure.
    let destination: FileReceiver.Destination?

    fileprivate init(_ manager: SessionManager, _ settings: RequestSettings?, _ destination: FileReceiver.Destination?) {
        self.manager = ObjectIdentifier(manager)
        self.settings = settings
        self.destination = destination
    }

    fileprivate func belongs(to other: SessionManager) -> Bool { manager == ObjectIdentifier(other) }
}

extension SessionManager {
    /// Whether a subclass may have overridden functions that make requests.
    var isSubclassed: Bool { type(of: self) != SessionManager.self }

    /// Calls a function that may be overridden with what its parameters do not have, or makes the request without it: in a session without a
    /// subclass, and for an override that calls back what has called it.
    @inline(__always)
    func handOver<R: Request>(
        _ settings: RequestSettings?, _ destination: FileReceiver.Destination? = nil, to overridable: () -> R, or make: () -> R
    ) -> R {
        guard isSubclassed, Handover.current?.belongs(to: self) != true else { return make() }
        return Handover.$current.withValue(Handover(self, settings, destination), operation: overridable)
    }

    /// Makes the request of a function that may be overridden, with what was handed over to it.
    @inline(__always)
    func takeOver<R: Request>(_ make: (Handover?) -> R) -> R {
        guard isSubclassed, let handedOver = Handover.current, handedOver.belongs(to: self) else { return make(nil) }
        // Requests that an adapter makes meanwhile have nothing to do with it.
        return Handover.$current.withValue(nil) { make(handedOver) }
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// An object of a layer above that has a request, and takes part in it in place of the closures of the session's delegate.
package protocol RequestOwner: AnyObject, Sendable {
    /// The closures of its request. What is `nil` in them is not decided by the session's either.
    var closures: RequestClosures { get }
}

/// The closures of one or more requests. Evaluations of servers, and client certificates, are shared by the requests that have the same object.
package final class RequestClosures: Sendable {
    package let values: SessionClosures
    let token = String.makeToken()
    /// What they have chosen for hosts that request a certificate.
    let certificateChoices = CertificateChoices()

    package init(_ values: SessionClosures) {
        self.values = values
    }
}

/// An owner, until its request has finished.
package final class RequestOwnership: Sendable {
    private let state: Lock<(any RequestOwner)?>
    /// Whether the owner's closures take part in the request, in place of those of the session's delegate.
    let takesPart: Bool

    package init(_ owner: any RequestOwner, takesPart: Bool = true) {
        state = Lock(owner)
        self.takesPart = takesPart
    }

    package var owner: (any RequestOwner)? { state.withLock { $0 } }

    func end() {
        // Released after unlocking.
        withExtendedLifetime(state.withLock { $0.take() }) {}
    }
}

extension RequestDriver {
    /// Reads the closures that take part in the request: those of its owner or, without one, of the session's delegate.
    func closures<Value>(_ read: (SessionClosures) -> Value) -> Value {
        if let closures = ownClosures { return read(closures.values) }
        return sessionDelegate.closures.withLock { read($0) }
    }

    /// The closures of the request's owner; `nil` without one.
    var ownClosures: RequestClosures? {
        guard let ownership = settings?.options.ownership, ownership.takesPart else { return nil }
        return ownership.owner?.closures
    }
}

extension SessionDelegate {
    /// The task of a request to a host that is in flight with these closures; `nil` without one.
    func task(with closures: RequestClosures, to host: String, port: Int) -> SessionTask? {
        requestsInFlight.lazy.filter { $0.driver.ownClosures === closures }.compactMap(\.task).first { task in
            HTTPOrigin(url: task.target.url).map { $0.host == host && $0.port == port } ?? false
        }
    }
}

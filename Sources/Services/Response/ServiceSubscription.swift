// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A subscription to a response or a stream. Releasing it cancels it, as ``cancel()`` does.
public final class ServiceSubscription: Sendable {
    private let onCancel: Lock<(@Sendable () -> Void)?>

    init(_ onCancel: @escaping @Sendable () -> Void) {
        self.onCancel = Lock(onCancel)
    }

    deinit {
        cancel()
    }

    /// Ends the subscription: no closure is called any more, except one that is already running. Thread-safe; repeated calls do nothing.
    public func cancel() {
        let onCancel = onCancel.withLock { onCancel in
            defer { onCancel = nil }
            return onCancel
        }
        onCancel?()
    }
}

extension ServiceSubscription: Hashable {
    /// Returns whether both are the same object.
    public static func == (lhs: ServiceSubscription, rhs: ServiceSubscription) -> Bool { lhs === rhs }
    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    /// Stores the subscription in a set, which retains it.
    public func store(in set: inout Set<ServiceSubscription>) { set.insert(self) }
}

/// How a subscription has ended.
public enum ServiceCompletion<Failure: Error>: Sendable {
    /// All values were received.
    case finished
    /// The request or the stream failed.
    case failure(Failure)
}

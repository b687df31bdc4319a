// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Somebody's interest in a response or a stream. Letting go of it ends the interest, as ``cancel()`` does.
public final class ServiceSubscription: Sendable {
    private let onCancel: Lock<(@Sendable () -> Void)?>

    init(_ onCancel: @escaping @Sendable () -> Void) {
        self.onCancel = Lock(onCancel)
    }

    deinit {
        cancel()
    }

    /// Ends the interest: nothing is called from now on but what runs already. Any thread, any number of times.
    public func cancel() {
        let onCancel = onCancel.withLock { onCancel in
            defer { onCancel = nil }
            return onCancel
        }
        onCancel?()
    }
}

extension ServiceSubscription: Hashable {
    /// Whether they are the same object.
    public static func == (lhs: ServiceSubscription, rhs: ServiceSubscription) -> Bool { lhs === rhs }
    /// By identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    /// Keeps the interest in a set, as long as that lives.
    public func store(in set: inout Set<ServiceSubscription>) { set.insert(self) }
}

/// How a subscription ended.
public enum ServiceCompletion<Failure: Error>: Sendable {
    /// All there was has come.
    case finished
    /// It failed.
    case failure(Failure)
}

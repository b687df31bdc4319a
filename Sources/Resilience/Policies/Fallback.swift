// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// What is used in place of a failed response: a value of the program's, for which ``CurlewCore/DataTask`` and all other `async` code can ask.
///
/// ```swift
/// let guest = Fallback(User.guest)
/// let user = try await guest { try await manager.request(url).validate().serializingDecodable(User.self).value }
/// ```
///
/// It takes part last, after retries, and not for cancelled requests. A stale response of the session's cache is used by
/// ``Resilience/staleIfError`` instead.
public struct Fallback<Value: Sendable>: Sendable {
    private let value: @Sendable (any Error) async throws -> Value
    private let accepts: @Sendable (any Error) -> Bool
    private let observer: (any PolicyObserver)?

    /// Creates a fallback.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - observer: is notified when the value is used; `nil`, the default, for none.
    ///   - accepts: whether the value is used after an error; by default after all but cancellations.
    public init(
        _ value: Value, observer: (any PolicyObserver)? = nil, when accepts: @escaping @Sendable (any Error) -> Bool = { _ in true }
    ) {
        self.init(observer: observer, when: accepts) { _ in value }
    }

    /// Creates a fallback from a closure, which returns the value, or throws.
    ///
    /// - Parameters:
    ///   - observer: is notified when the value is used; `nil`, the default, for none.
    ///   - accepts: whether the closure is called after an error; by default after all but cancellations.
    ///   - value: returns the value.
    public init(
        observer: (any PolicyObserver)? = nil, when accepts: @escaping @Sendable (any Error) -> Bool = { _ in true },
        _ value: @escaping @Sendable (any Error) async throws -> Value
    ) {
        self.observer = observer
        self.accepts = accepts
        self.value = value
    }

    /// Performs an operation, and returns the fallback's value if it fails.
    ///
    /// - Throws: the operation's error if the fallback does not accept it; what the fallback's closure throws.
    public func callAsFunction(
        isolation: isolated (any Actor)? = #isolation, _ operation: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await operation()
        } catch {
            guard !Task.isCancelled, !Self.isCancellation(error), accepts(error) else { throw error }
            let result = try await value(error)
            observer?.policyDidAct(PolicyEvent(.fallback, .fellBack))
            return result
        }
    }

    private static func isCancellation(_ error: any Error) -> Bool {
        if error is CancellationError { return true }
        if case .cancelled? = error.asCurlewError { return true }
        return false
    }
}

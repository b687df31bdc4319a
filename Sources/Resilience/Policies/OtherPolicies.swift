// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// Makes one transfer of equal requests that are in flight at the same time.
///
/// ```swift
/// configuration.use(Resilience(coalescing: Coalescing()))
/// ```
///
/// Requests are equal if method, URL, all header fields, credentials and cookies included, cache policy and timeouts are, and if they have no
/// body. Only `GET` and `HEAD` requests whose body is received whole count. A request joins until the response's head was received. Each has
/// its own cancellation, suspension and deadline: the transfer is cancelled with the last of them.
///
/// Each request gets the whole response, `Set-Cookie` included. A program that sends requests of several users without credentials, and hands
/// the cookies of their responses on, has to leave those requests out.
public struct Coalescing: Sendable {
    /// The policy's name, which events have; empty by default.
    public var name = ""
    /// Whether a request takes part; by default all that can.
    public var includes: @Sendable (PolicyRequest) -> Bool = { _ in true } {
        didSet { isSelective = true }
    }
    /// Whether `includes` was set.
    private(set) var isSelective = false
    /// The most bytes that are kept for requests that are slower than the transfer; it pauses for them above that. 1 MiB by default.
    public var bufferSize = 1 << 20

    /// Creates a policy.
    public init() {}

    /// Creates a policy for some requests.
    ///
    /// - Parameter includes: whether a request takes part. Called on the thread that sends the request: must not block.
    public init(where includes: @escaping @Sendable (PolicyRequest) -> Bool) {
        self.includes = includes
        isSelective = true
    }
}

/// Gives each request with an unsafe method a key, the same on every attempt, so that a server can distinguish a repetition from a second
/// request.
///
/// ```swift
/// let keys = IdempotencyKeys()
/// configuration.use(Resilience(idempotencyKeys: keys))
/// let manager = SessionManager(configuration: configuration, interceptor: keys.retryPolicy())
/// ```
///
/// The field is `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07), a quoted string, and is not replaced if the request has
/// one. A server that does not know it may perform a repeated request twice: ``retryPolicy(limit:)`` is for servers that do.
public struct IdempotencyKeys: Sendable {
    /// The name of the field: `Idempotency-Key` by default.
    public var field = "Idempotency-Key"
    /// The methods of requests that get a key: `POST` and `PATCH` by default.
    public var methods: Set<HTTPMethod> = [.post, .patch]
    /// Whether a request gets a key; by default all with these methods.
    public var includes: @Sendable (PolicyRequest) -> Bool = { _ in true }
    /// What the keys of this value begin with: no other value has it.
    let prefix = UUID().uuidString.lowercased()

    /// Creates a policy with the defaults.
    public init() {}

    /// A policy that also retries requests with these methods.
    ///
    /// - Parameter limit: the most retries of a request; 2 by default.
    public func retryPolicy(limit: UInt = RetryPolicy.defaultRetryLimit) -> RetryPolicy {
        RetryPolicy(retryLimit: limit, retryableHTTPMethods: RetryPolicy.defaultRetryableHTTPMethods.union(methods))
    }

    /// The request with its key; `nil` if it gets none.
    func adding(to request: TransferRequest) -> TransferRequest? {
        guard methods.contains(request.method), !request.headers.contains(where: { $0.isNamed(field) }),
            let id = request.exchangeRequestID, includes(PolicyRequest(request))
        else { return nil }
        var keyed = request
        keyed.headers.update(name: field, value: "\"\(prefix)-\(id)\"")
        return keyed
    }
}

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

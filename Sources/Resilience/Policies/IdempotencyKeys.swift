// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

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

// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Retries as ``/CurlewCore/RetryPolicy``, and queries of a ``GraphQLClient`` also if they are sent by POST.
///
/// A mutation, an operation of which it is not clear what it does, and another request by POST are retried only if they have a field
/// `Idempotency-Key`, so that a session can have the policy as its interceptor.
public final class GraphQLRetryPolicy: RetryPolicy, @unchecked Sendable {  // as its superclass
    /// Creates a policy; parameters as in ``/CurlewCore/RetryPolicy``.
    public init(
        retryLimit: UInt = RetryPolicy.defaultRetryLimit,
        exponentialBackoffScale: TimeInterval = RetryPolicy.defaultExponentialBackoffScale,
        maximumDelay: TimeInterval = RetryPolicy.defaultMaximumDelay,
        retryableHTTPStatusCodes: Set<Int> = RetryPolicy.defaultRetryableHTTPStatusCodes,
        retryableFailureKinds: Set<TransferFailure.Kind> = RetryPolicy.defaultRetryableFailureKinds
    ) {
        super.init(
            retryLimit: retryLimit, exponentialBackoffScale: exponentialBackoffScale, maximumDelay: maximumDelay,
            retryableHTTPMethods: RetryPolicy.defaultRetryableHTTPMethods.union([.post]),
            retryableHTTPStatusCodes: retryableHTTPStatusCodes, retryableFailureKinds: retryableFailureKinds)
    }

    /// As the superclass, for requests that may be repeated.
    public override func shouldRetry(_ request: Request, dueTo error: any Error) -> Bool {
        guard let sent = request.request, sent.httpMethod == HTTPMethod.post.rawValue else {
            return super.shouldRetry(request, dueTo: error)
        }
        let mayRepeat = request.options.graphQLKind == .query || sent.value(forHTTPHeaderField: "Idempotency-Key") != nil
        return mayRepeat && super.shouldRetry(request, dueTo: error)
    }
}

extension RequestOptions {
    private static var kindKey: String { "org.curlew.graphql.kind" }

    /// What the operation does that the request is for; `nil` if that is not known.
    var graphQLKind: GraphQLRequest.Kind? {
        get { userInfo[Self.kindKey] as? GraphQLRequest.Kind }
        set { userInfo[Self.kindKey] = newValue }
    }
}

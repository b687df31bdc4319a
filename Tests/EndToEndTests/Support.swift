// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

// MARK: - Environment

extension Trait where Self == ConditionTrait {
    static var needsNginx: Self { .enabled(if: Servers.hasNginx, "needs the nginx of scripts/servers") }
    static var needsProxies: Self { .enabled(if: Servers.hasProxies, "needs the proxies of scripts/servers") }
    static var needsHttpbin: Self { .enabled(if: Servers.hasHttpbin, "needs the httpbin of scripts/servers") }
}

/// The scale of the stress tests.
enum Scale {
    static let requests = TestLength.value(4_000, short: 1_000, long: 10_000)
    static let sessions = TestLength.value(2_000, short: 200)
    static let largeFile: Int64 = TestLength.value(256 << 20, short: 64 << 20, long: 1 << 30)
    static let streamedBody: Int64 = TestLength.value(256 << 20, short: 64 << 20)
    static let together = TestLength.value(5_000, short: 500, long: 10_000)
    static let soak = TestLength.value(20_000, short: 2_000, long: 1_000_000)
    static let cancels = TestLength.value(300, short: 200, long: 4_000)
    static let pauses = TestLength.value(96, short: 24, long: 2_000)
    /// Whether memory figures are meaningful: a sanitizer's shadow memory would be counted too.
    static let limitsMemory = !TestLength.isShort
}

// MARK: - Errors

extension Error {
    /// The transfer failure, if the error is one.
    var transferFailure: TransferFailure? {
        if case .transferFailed(let failure) = self as? CurlewError { failure } else { nil }
    }

    var redirectFailure: CurlewError.RedirectFailureReason? {
        if case .redirectFailed(let reason, _) = self as? CurlewError { reason } else { nil }
    }

    var validationFailure: CurlewError.ResponseValidationFailureReason? {
        if case .responseValidationFailed(let reason, _) = self as? CurlewError { reason } else { nil }
    }

    var unacceptableStatus: Int? {
        if case .unacceptableStatusCode(let code) = validationFailure { code } else { nil }
    }

    var invalidHeader: String? {
        if case .urlRequestValidationFailed(.invalidHeader(let name), _) = self as? CurlewError { name } else { nil }
    }

    var isCancelled: Bool {
        if case .cancelled = self as? CurlewError { true } else { false }
    }

    var isSessionInvalidated: Bool {
        if case .sessionInvalidated = self as? CurlewError { true } else { false }
    }

    var isSessionShutDown: Bool {
        if case .sessionShutDown = self as? CurlewError { true } else { false }
    }
}

/// An adapter made from a closure.
struct Adapter: RequestAdapter {
    let change: @Sendable (inout URLRequest) throws -> Void

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        var request = urlRequest
        try change(&request)
        return request
    }
}

/// A retrier made from a closure.
struct Retrier: RequestRetrier {
    let decide: @Sendable (Request, any Error, RequestRetryCompletion) -> Void

    func should(_ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion) {
        decide(request, error, completion)
    }

    /// Retries up to `count` times, each time after a delay.
    static func attempts(_ count: UInt, delay: TimeInterval = 0) -> Retrier {
        Retrier { request, _, completion in completion(request.retryCount < count, delay) }
    }
}

extension SessionManager {
    /// Returns what `/echo` reports about a request, and the request's response.
    func echo(
        _ url: String, method: HTTPMethod = .get, parameters: Parameters? = nil, encoding: any ParameterEncoding = URLEncoding.default,
        headers: HTTPHeaders? = nil
    ) async throws -> EchoReply {
        try await request(url, method: method, parameters: parameters, encoding: encoding, headers: headers)
            .validate().serializingDecodable(EchoReply.self).value
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Foundation

/// A time from which the tests count, in seconds since 1970: Sun, 06 Nov 1994 08:49:37 GMT.
let start = 784_111_777.0
let startDate = "Sun, 06 Nov 1994 08:49:37 GMT"

/// `startDate`, moved by seconds.
func date(_ seconds: Double) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter.string(from: Date(timeIntervalSince1970: start + seconds))
}

func get(_ headers: HTTPHeaders = [:], _ mode: CacheRequest.Mode = .protocolRules, method: HTTPMethod = .get) -> CacheRequest {
    CacheRequest(method: method, headers: headers, mode: mode)
}

func received(_ headers: HTTPHeaders, status: Int = 200, at time: Double = 0, delay: Double = 0) -> StorageRules.Received {
    .init(statusCode: status, headers: headers, requestTime: start + time - delay, responseTime: start + time)
}

/// What is stored of a response to a request; `nil` if nothing is.
func store(
    _ headers: HTTPHeaders, status: Int = 200, for request: CacheRequest = get(), at time: Double = 0, delay: Double = 0
) -> StoredResponse? {
    StorageRules.head(of: received(headers, status: status, at: time, delay: delay), url: "https://host.test/", request: request)
}

/// How a request is answered some seconds after a response was stored.
func decide(_ headers: HTTPHeaders, _ request: CacheRequest = get(), after seconds: Double, delay: Double = 0) -> CacheDecision {
    let stored = store(headers, delay: delay).map { [$0] } ?? []
    return CacheRules.decide(request, stored, now: start + seconds)
}

extension CacheDecision {
    /// Whether a stored response is used without asking the host.
    var serves: Bool {
        if case .serve = self { true } else { false }
    }
    /// Whether the host is asked with conditions.
    var validates: Bool {
        if case .validate = self { true } else { false }
    }
    /// The reason, whatever the decision.
    var reason: CacheReason? {
        switch self {
        case .serve(_, _, let reason, _, _), .validate(_, _, let reason), .forward(let reason, _): reason
        case .complete, .fail: nil
        }
    }
}

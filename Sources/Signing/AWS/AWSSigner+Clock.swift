// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Corrects the clock by that of the server, if it refuses a signature for its time, and repeats the request once.
///
/// As an interceptor of the session or of requests. Retriers are asked about errors only: the request has to validate its response, as by
/// `validate()`.
///
/// ```swift
/// let manager = SessionManager(configuration: configuration, interceptor: signer)
/// ```
extension AWSSigner: RequestInterceptor {
    /// The least difference between the clocks for which a refusal that has other reasons as well is taken for one of the time: S3 accepts
    /// 15 minutes, other services 5.
    private static let tolerance = Duration.seconds(240)
    private static let codesOfTime = [
        "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "Signature expired", "Signature not yet current",
    ]
    /// The most bytes of a refusal's body that are read.
    private static let longestRefusal = 16 << 10

    /// Takes over the server's time, if the response is a refusal for that reason and has a `Date`; repeats the request unless it was
    /// repeated before, so that a server whose `Date` is wrong is not asked again and again.
    public func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        let signer = request.options.signer ?? manager.session.configuration.signer
        let own = signer as? AWSSigner ?? (signer as? ChunkedUpload)?.signer
        completion(own === self && correctClock(after: request) && request.retryCount == 0, 0)
    }

    /// Whether the response refuses the time of a signature, and says the server's.
    private func correctClock(after request: Request) -> Bool {
        guard let head = request.responseHead, [400, 401, 403].contains(head.statusCode),
            let offset = AWSSignatureV4.clockOffset(of: head.headers, receivedAt: Date()),
            // After a redirect to another origin, nothing was signed.
            let sent = request.request?.url, let answered = request.response?.url,
            HTTPOrigin(url: sent.absoluteString) == HTTPOrigin(url: answered.absoluteString)
        else { return false }
        let body = request.delegate.data ?? Data()
        let text = String(decoding: body.prefix(Self.longestRefusal), as: UTF8.self)
        let isOfTime = Self.codesOfTime.contains { text.containsScalars(of: $0) }
        // The response to HEAD has no body.
        let isSilent = body.isEmpty && (head.value(for: "x-amz-request-id") ?? head.value(for: "x-amzn-RequestId")) != nil
        return clock.withLock { known in
            guard isOfTime || isSilent && abs((offset - known).seconds) >= Self.tolerance.seconds else { return false }
            known = offset
            return true
        }
    }
}

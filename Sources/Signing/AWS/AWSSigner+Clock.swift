// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Corrects the clock by that of the server, if it refuses a signature for its time, and repeats the request once.
///
/// As an interceptor of the session or of requests. Retriers are asked about errors only: the request has to validate its response, as by
/// `validate()`. Only a server that is reached by `https`, or is on this computer, is believed: others could obtain signatures for a later
/// time. A response of a cache, which has an `Age`, is not.
///
/// ```swift
/// let manager = SessionManager(configuration: configuration, interceptor: signer)
/// ```
extension AWSSigner: RequestInterceptor {
    /// By how much the service's clock is ahead of this computer's.
    struct Clock {
        var offset: Duration
        /// What was supposed before it was corrected, as it may be in requests that are under way.
        private var previous: Duration
        private var correctedAt: ContinuousClock.Instant?

        init(offset: Duration) { (self.offset, previous) = (offset, offset) }

        /// Takes over what a refusal says; returns whether it is one of the time, and the request is worth a repetition.
        ///
        /// - Parameters:
        ///   - names: whether the refusal names the time as its reason.
        ///   - retryCount: of the request.
        mutating func correct(to new: Duration, names: Bool, retryCount: UInt) -> Bool {
            let wasCorrected = correctedAt.map { $0.duration(to: .now) < AWSSigner.tolerance } ?? false
            let wasOld = wasCorrected && differs(new, from: previous, by: AWSSigner.tolerance)
            let isNews = differs(new, from: offset, by: names ? AWSSigner.precision : AWSSigner.tolerance)
            if isNews { (previous, offset, correctedAt) = (offset, new, .now) }
            // An attempt after the first has the corrected time, unless it was corrected now.
            return retryCount == 0 ? names || isNews || wasOld : isNews && !wasCorrected && retryCount < AWSSigner.mostRetries
        }

        private func differs(_ lhs: Duration, from rhs: Duration, by least: Duration) -> Bool {
            abs((lhs - rhs).seconds) >= least.seconds
        }
    }

    /// The least difference between the clocks for which a refusal that has other reasons as well is taken for one of the time: S3 accepts
    /// 15 minutes, other services 5. Also the time in which requests may end that were signed before a correction.
    private static let tolerance = Duration.seconds(240)
    /// The least difference between the clocks that is not one of the transfer, and of the whole seconds of `Date`.
    private static let precision = Duration.seconds(10)
    /// The number of retries, for any reasons, after which none is for the time.
    private static let mostRetries: UInt = 10
    private static let codesOfTime = [
        "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "Signature expired", "Signature not yet current",
    ]
    /// The most bytes of a refusal's body that are read.
    private static let longestRefusal = 16 << 10

    /// Takes over the server's time, if the response is a refusal for that reason and has a `Date`; repeats the request, but not again and
    /// again if the `Date` is wrong.
    public func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        let signer = request.options.signer ?? manager.session.configuration.signer
        let own = signer as? AWSSigner ?? (signer as? ChunkedUpload)?.signer
        completion(own === self && !request.options.withholdsCredentials && correctClock(after: request), 0)
    }

    /// Whether the request is to be repeated, as the response refuses the time of its signature, and says the server's.
    private func correctClock(after request: Request) -> Bool {
        guard let head = request.responseHead, [400, 401, 403].contains(head.statusCode), head.value(for: "Age") == nil,
            let offset = AWSSignatureV4.clockOffset(of: head.headers, receivedAt: Date()),
            // After a redirect to another origin, nothing was signed.
            let sent = request.request?.url, let answered = request.response?.url,
            HTTPOrigin(sent) == HTTPOrigin(answered), answered.absoluteString.isProtectedURL
        else { return false }
        let body = request.delegate.data ?? Data()
        let text = String(decoding: body.prefix(Self.longestRefusal), as: UTF8.self)
        let isOfTime = Self.codesOfTime.contains { text.containsScalars(of: $0) }
        // The response to HEAD has no body.
        let isSilent = body.isEmpty && (head.value(for: "x-amz-request-id") ?? head.value(for: "x-amzn-RequestId")) != nil
        return (isOfTime || isSilent) && clock.withLock { $0.correct(to: offset, names: isOfTime, retryCount: request.retryCount) }
    }
}

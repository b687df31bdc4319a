// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// A failed request is retried, or ends with its error.

extension RequestDriver {
    /// Asks the retriers about a failed request, if there are any and it may be retried.
    func considerRetry(of request: Request, after error: any Error) {
        guard let retrier = request.retrier(before: sessionDelegate.retrier), let manager = sessionDelegate.manager else {
            return finish(request)
        }
        guard mayRetry(request, after: error) else { return endWithoutRetry(request, after: error) }
        let answer: StepContinuation<(Bool, TimeInterval)>? = waitForAttempt(of: request) { self.retrierAnswered($0, after: $1, request) }
        guard let answer else { return }
        let delivered = session.delivered(error)
        session.queue.async {
            guard answer.isPending else { return }
            self.inContext { retrier.should(manager, retry: request, with: delivered) { answer(($0, $1)) } }
        }
    }

    private func retrierAnswered(_ shouldRetry: Bool, after delay: TimeInterval, _ request: Request) {
        // One that can't be made in time is not waited for: the request fails with what its last attempt has ended with.
        let isInTime = state.withLock { $0.deadline }.map { delay < $0.deadline.remaining.seconds } ?? true
        guard shouldRetry, isInTime, mayTryAgain(request, after: delay) else { return finish(request) }
        if session.isMonitored(.retries), let error = state.withLock({ $0.attempt.error }).map({ session.delivered($0) }) {
            session.notifyMonitors(of: request, .retries) { $0.request(request, willRetryAfter: delay, because: error) }
        }
        guard let due: StepContinuation<Void> = waitForAttempt(of: request, { self.retry(request) }) else { return }
        guard delay > 0 else { return session.queue.async { due() } }
        // Clamped, as `Duration` traps on more than it can hold.
        let timer = session.timers.start(after: .seconds(min(delay, 100 * 365 * 86_400))) { due() }
        state.withLock { $0.retryTimer = timer }
        session.configuration.clock?.waitBegan()
    }

    private func retry(_ request: Request) {
        state.withLock { $0.retryTimer = nil }
        guard let manager = sessionDelegate.manager, !session.isInvalidated else {
            return end(request, with: session.endError)
        }
        guard !request.isRepeatable, mayRenewBody(of: request), let body = request.streamBody, let task = request.task
        else {
            return attempt(.retry, of: request, by: manager)
        }
        let renewed: StepContinuation<NewBodyStream>? = waitForAttempt(of: request) { [weak manager] stream in
            guard let manager, body.restart(with: stream.value) else {
                return self.end(request, with: CurlewError.redirectFailed(reason: .bodyNotRepeatable))
            }
            self.attempt(.retry, of: request, by: manager)
        }
        if let renewed { inContext { askForStream(for: task, renewed) } }
    }
}

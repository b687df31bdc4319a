// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// A response's path after the last attempt: serialized, validated, possibly mocked, filtered; then delivered to accessories, delegate and
// blocks.

extension RequestAgent {
    /// Processes the last attempt's result and delivers it: no other attempt follows.
    func process(_ run: RequestRun, _ result: RequestResult) {
        let request = run.request
        var result = result
        ResponseSerialization.serialize(&result, for: request, configuration)
        guard store(result, of: run) else { return }
        check(run)
        mock(run)
        filter(run)
        guard run.isRunning else { return }
        if request.error == nil { request.requestCompletePreprocessor() } else { request.requestFailedPreprocessor() }
        configuration.callbackQueue.async { self.deliver(run) }
    }

    private func store(_ result: RequestResult, of run: RequestRun) -> Bool {
        run.request.state.withLock { state in
            guard state.run === run, state.stage == .running else { return false }
            state.result = result
            return true
        }
    }

    /// Validates the status, then the JSON's shape; only for responses received and serialized without an error.
    private func check(_ run: RequestRun) {
        let request = run.request
        guard request.error == nil else { return }
        if request.validatesStatus, !request.statusCodeValidator() {
            return run.fail(RequestValidationError.invalidStatusCode(request.responseStatusCode))
        }
        guard let json = request.networkJSON, let shape = request.jsonValidator() else { return }
        if !JSONShape.matches(json, shape) { run.fail(RequestValidationError.invalidJSONFormat) }
    }

    private func mock(_ run: RequestRun) {
        let request = run.request
        guard RequestsConfiguration.canMock, configuration.debugMockEnabled, request.error != nil else { return }
        guard request.responseMockValidator(), request.responseMockProcessor() else { return }
        request.state.withLock { state in
            guard state.run === run else { return }
            state.result.error = nil
            state.result.isMocked = true
        }
    }

    private func filter(_ run: RequestRun) {
        let request = run.request
        guard request.error == nil else { return }
        do {
            try request.filterResponse()
            for filter in configuration.urlFilters { try filter.filterResponse(with: request) }
        } catch {
            run.fail(error)
        }
    }

    // MARK: Callbacks

    /// Calls accessories, filter, delegate and blocks, in this order; on the callback queue.
    private func deliver(_ run: RequestRun) {
        let request = run.request
        let (isClaimed, events) = run.claimDelivery()
        guard isClaimed else { return }
        let ending = request.error == nil ? RequestEnding.succeeded : .failed
        configuration.log("\(ending) \(request)" + (request.error.map { ": \($0)" } ?? ""))
        request.stopReportingCachedResponse()
        events?.post(.willStop, request)
        request.callBack(ending) { run.isDelivering }
        events?.post(.didStop, request)
        run.finish(request.isCancelled ? .stopped : ending)
    }
}

extension BaseRequest {
    /// Calls filter, delegate and block, as long as `isDelivering`: a stop or another start in one of them skips the rest.
    func callBack(_ ending: RequestEnding, while isDelivering: () -> Bool) {
        let hasSucceeded = ending == .succeeded
        guard isDelivering() else { return }
        if hasSucceeded { requestCompleteFilter() } else { requestFailedFilter() }
        guard isDelivering() else { return }
        if hasSucceeded { delegate?.requestFinished(self) } else { delegate?.requestFailed(self) }
        guard isDelivering() else { return }
        (hasSucceeded ? successCompletionBlock : failureCompletionBlock)?(self)
    }

    /// Delivers what the request already has, for example from a cache: calls preprocessor, filter, delegate and block on the callback
    /// queue, without notifying accessories.
    ///
    /// - Parameters:
    ///   - start: the claimed start; `nil` to begin a new one.
    ///   - failure: the error to deliver if there is nothing to hand over; ends the request in the same way.
    func deliverFromCache(_ start: RequestStart? = nil, failure: (any Error)? = nil) {
        guard let run = agent.makeRun(for: self, start: start) else { return }
        if let failure { run.fail(failure) }
        run.configuration.callbackQueue.async { [self] in
            guard run.claimDelivery().isClaimed else { return }
            let ending = failure == nil ? RequestEnding.succeeded : .failed
            if failure == nil { requestCompletePreprocessor() } else { requestFailedPreprocessor() }
            callBack(ending) { run.isDelivering }
            run.finish(isCancelled ? .stopped : ending)
        }
    }

    /// The JSON received from the network, regardless of a cached response.
    var networkJSON: Any? { state.withLock { $0.result.jsonObject } }
    /// Whether the response's status has yet to be validated; a download's status is validated before its file is moved into place.
    var validatesStatus: Bool { state.withLock { $0.result.response != nil && !$0.result.isDownload } }
}

extension RequestRun {
    /// Sets the error that this start has failed with, unless the request was stopped meanwhile, and possibly started again.
    fileprivate func fail(_ error: any Error) {
        request.state.withLock { if $0.run === self { $0.result.error = error } }
    }
}

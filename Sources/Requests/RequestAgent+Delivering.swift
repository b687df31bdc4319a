// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// The way of an answer: serialized, checked, perhaps mocked, filtered; then handed to whom it concerns.

extension RequestAgent {
    /// No other attempt follows: makes of the answer what the request wants, and delivers it.
    func conclude(_ run: RequestRun, _ answer: RequestAnswer) {
        let request = run.request
        var answer = answer
        ResponseSerialization.serialize(&answer, for: request, configuration)
        guard store(answer, of: run) else { return }
        check(request)
        mock(request)
        filter(request)
        guard run.isRunning else { return }
        if request.error == nil { request.requestCompletePreprocessor() } else { request.requestFailedPreprocessor() }
        configuration.callbackQueue.async { self.deliver(run) }
    }

    private func store(_ answer: RequestAnswer, of run: RequestRun) -> Bool {
        run.request.state.withLock { state in
            guard state.run === run, state.stage == .running else { return false }
            state.answer = answer
            return true
        }
    }

    /// Status, then shape: only of what came and was made sense of.
    private func check(_ request: BaseRequest) {
        guard request.error == nil else { return }
        if request.isStatusToBeJudged, !request.statusCodeValidator() {
            return request.fail(RequestValidationError.invalidStatusCode(request.responseStatusCode))
        }
        guard let json = request.networkJSON, let shape = request.jsonValidator() else { return }
        if !JSONShape.matches(json, shape) { request.fail(RequestValidationError.invalidJSONFormat) }
    }

    private func mock(_ request: BaseRequest) {
        guard RequestsConfiguration.canMock, configuration.debugMockEnabled, request.error != nil else { return }
        guard request.responseMockValidator(), request.responseMockProcessor() else { return }
        request.state.withLock {
            $0.answer.error = nil
            $0.answer.isMocked = true
        }
    }

    private func filter(_ request: BaseRequest) {
        guard request.error == nil else { return }
        do {
            try request.filterResponse()
            for filter in configuration.urlFilters { try filter.filterResponse(with: request) }
        } catch {
            request.fail(error)
        }
    }

    // MARK: Callbacks

    /// Tells everybody, in this order; on the callback queue.
    private func deliver(_ run: RequestRun) {
        let request = run.request
        guard run.claimDelivery() else { return }
        let stops = request.stops
        let ending = request.error == nil ? RequestEnding.succeeded : .failed
        configuration.log("\(ending) \(request)" + (request.error.map { ": \($0)" } ?? ""))
        request.networkAnswerWillBeDelivered()
        request.toggleAccessoriesWillStop()
        request.callBack(ending, isStopped: { request.stops != stops })
        request.toggleAccessoriesDidStop()
        run.end(request.isCancelled ? .stopped : ending)
    }
}

extension BaseRequest {
    /// Filter, delegate, block; what a stop in one of them leaves undone stays so.
    func callBack(_ ending: RequestEnding, isStopped: () -> Bool) {
        let hasSucceeded = ending == .succeeded
        if hasSucceeded { requestCompleteFilter() } else { requestFailedFilter() }
        if isStopped() { return }
        if hasSucceeded { delegate?.requestFinished(self) } else { delegate?.requestFailed(self) }
        if isStopped() { return }
        (hasSucceeded ? successCompletionBlock : failureCompletionBlock)?(self)
    }

    /// Hands over what the request has already, as from a cache: on the callback queue preprocessor, filter, delegate and block, with no
    /// word to accessories.
    ///
    /// - Parameters:
    ///   - start: the start that was claimed; `nil` for one of its own.
    ///   - failure: why there is nothing to be handed over, which ends the request in the same way.
    func deliverFromCache(_ start: Int? = nil, failure: (any Error)? = nil) {
        guard let run = agent.makeRun(for: self, start: start) else { return }
        if let failure { fail(failure) }
        run.configuration.callbackQueue.async { [self] in
            guard run.claimDelivery() else { return }
            let stops = stops
            let ending = failure == nil ? RequestEnding.succeeded : .failed
            if failure == nil { requestCompletePreprocessor() } else { requestFailedPreprocessor() }
            callBack(ending, isStopped: { self.stops != stops })
            run.end(isCancelled ? .stopped : ending)
        }
    }

    /// How often the request was stopped.
    var stops: Int { state.withLock { $0.stops } }

    /// Sets why the request has failed; `nil` makes a success of it.
    func fail(_ error: (any Error)?) {
        state.withLock { $0.answer.error = error }
    }

    /// The JSON that the network has brought, whatever a cache says.
    var networkJSON: Any? { state.withLock { $0.answer.jsonObject } }
    /// Whether there is an answer with a status that nobody was asked about.
    var isStatusToBeJudged: Bool { state.withLock { $0.answer.response != nil && !$0.answer.isDownload } }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// An attempt's path: built, sent, checked for a retry; the last one is passed on to be delivered.

extension RequestAgent {
    /// Builds and sends an attempt.
    func attempt(_ run: RequestRun) {
        guard run.isRunning else { return }
        run.noteBuilding()
        do {
            let built = try build(run)
            run.request.attemptIsBuilt(run.options)
            guard run.isRunning else { return }
            send(built, run)
        } catch {
            // Nothing was sent, and another attempt would fail in the same way.
            processingQueue.async { self.process(run, RequestResult(error: error)) }
        }
    }

    private func send(_ built: BuiltRequest, _ run: RequestRun) {
        if let target = built.target {
            // A stopped download may still be saving its partial data, from which this one is to resume.
            let mayProceed = enterDownload(run, target) { self.send(built, run) }
            guard mayProceed, run.isRunning else { return mayProceed ? leaveDownload(run, target) : () }
        }
        let manager = currentManager()
        // The attempt may be made on a queue, where the caller's deadline is not known.
        let request = Deadline.with(run.deadline) {
            built.target.map { download(built, to: $0, run, manager) } ?? transfer(built, run, manager)
        }
        run.request.state.withLock { state in
            guard state.run === run else { return }
            state.originalRequest = built.urlRequest
            state.task = request.task
            if state.identifier == 0 { state.identifier = request.task?.taskIdentifier ?? 0 }
        }
        run.keep(request)
    }

    private func transfer(_ built: BuiltRequest, _ run: RequestRun, _ manager: SessionManager) -> Request {
        let request: DataRequest
        let options = run.options
        if let file = built.bodyFile {
            request = upload(run) { manager.upload(file, with: built.urlRequest, options: options) }
        } else if run.request.uploadProgressBlock != nil, let stream = built.urlRequest.httpBodyStream {
            request = upload(run) { manager.upload(stream, with: built.urlRequest, options: options) }
        } else if run.request.uploadProgressBlock != nil, let body = built.urlRequest.httpBody {
            request = upload(run) { manager.upload(body, with: built.urlRequest, options: options) }
        } else {
            request = manager.request(built.urlRequest, options: options)
        }
        return request.response(queue: processingQueue) { response in
            // Retains the session until here, even if the configuration has replaced it.
            _ = manager
            var result = RequestResult()
            result.response = response.response
            if response.response != nil { result.data = response.data }
            result.error = response.error
            result.metrics = response.metrics
            self.attemptCompleted(run, result)
        }
    }

    private func upload(_ run: RequestRun, _ make: () -> UploadRequest) -> UploadRequest {
        let request = make()
        guard let block = run.request.uploadProgressBlock else { return request }
        return request.uploadProgress(queue: configuration.callbackQueue) { progress in
            if run.isRunning { block(progress) }
        }
    }

    private func download(_ built: BuiltRequest, to target: URL, _ run: RequestRun, _ manager: SessionManager) -> Request {
        let limit = manager.session.configuration.maximumBodySize
        let request = manager.download(
            built.urlRequest, requestOptions: run.options, to: target,
            options: [.removePreviousFile, .createIntermediateDirectories, .resumePreviousDownload]
        ).validate { _, response, file, _ in
            if run.acceptsStatus(of: response) { return .success }
            run.keepRejected(file, upTo: limit)
            return .failure(RequestValidationError.invalidStatusCode(response.statusCode))
        }
        if let block = run.request.resumableDownloadProgressBlock {
            request.downloadProgress(queue: configuration.callbackQueue) { progress in
                if run.isRunning { block(progress) }
            }
        }
        return request.response(queue: processingQueue) { response in
            _ = manager
            self.leaveDownload(run, target)
            var result = RequestResult()
            result.isDownload = true
            result.response = response.response
            result.error = response.error
            result.metrics = response.metrics
            result.data = run.rejectedBody
            if response.error == nil { result.object = response.destinationURL ?? response.temporaryURL }
            self.attemptCompleted(run, result)
        }
    }

    // MARK: Retries

    /// Handles the completion of an attempt: counts it and decides about another.
    private func attemptCompleted(_ run: RequestRun, _ result: RequestResult) {
        let elapsed = run.elapsed
        let count = run.request.state.withLock { state -> Int? in
            guard state.run === run, state.stage == .running else { return nil }
            state.totalCount += 1
            state.totalTime = elapsed
            state.result = result
            return state.totalCount
        }
        guard let count else { return }
        if let metrics = result.metrics { configuration.collectingMetricsBlock?(run.request, metrics) }
        if run.isTooLate, result.error != nil { return process(run, result) }
        if let refresher = configuration.tokenRefresher, refresher.isRejected(result), run.claimAuthenticatedRetry() {
            return wait(run, result) {
                refresher.refresh(for: run, $0)
            } next: { run, isRefreshed in
                self.processingQueue.async {
                    guard isRefreshed else { return self.considerRetry(run, result, count) }
                    run.noteAuthenticatedRetry()
                    self.attempt(run)
                }
            }
        }
        considerRetry(run, result, count)
    }

    private func considerRetry(_ run: RequestRun, _ result: RequestResult, _ count: Int) {
        guard run.isRunning else { return }
        let request = run.request
        let interval = max(0, request.requestRetryInterval())
        guard run.mayRetry(after: count, interval: interval) else { return process(run, result) }
        let object: Any? = result.object ?? result.data
        guard request.requestRetryValidator(result.response, responseObject: object, error: result.error) else {
            return process(run, result)
        }
        wait(run, result) { decided in
            request.requestRetryProcessor(
                result.response, responseObject: object, error: result.error, completionHandler: decided)
        } next: { run, shallRetry in
            guard run.isRunning else { return }
            guard shallRetry else { return self.processingQueue.async { self.process(run, result) } }
            self.configuration.log("retry \(count) after \(interval) s \(run.request)")
            self.wait(run, result) { due in
                self.clock.schedule(interval, self.processingQueue) { due(true) }
            } next: { run, _ in
                self.attempt(run)
            }
        }
    }

    /// Waits for an answer, of which the first counts. Once the run's deadline has passed, the request fails with that instead.
    ///
    /// What is waited for does not retain the run: a stopped request is released at once.
    private func wait(
        _ run: RequestRun, _ result: RequestResult, for answer: (@escaping @Sendable (Bool) -> Void) -> Void,
        next: @escaping @Sendable (RequestRun, Bool) -> Void
    ) {
        let isDecided = Lock(false)
        let decide = { @Sendable () -> Bool in
            isDecided.withLock { isDecided in
                defer { isDecided = true }
                return !isDecided
            }
        }
        let endTimer = run.deadline.map { deadline in
            currentManager().session.atEnd(of: deadline) { [weak run] in
                guard decide(), let run, run.isRunning else { return }
                var result = result
                result.error = run.deadlineFailure
                self.processingQueue.async { [result] in self.process(run, result) }
            }
        }
        answer { [weak run] decision in
            guard decide() else { return }
            endTimer?()
            if let run { next(run, decision) }
        }
    }
}

extension RequestRun {
    /// Whether count and time allow another attempt.
    fileprivate func mayRetry(after count: Int, interval: TimeInterval) -> Bool {
        let limit = request.requestRetryCount()
        guard limit < 0 || count - authenticatedRetries <= limit else { return false }
        let timeout = request.requestRetryTimeout()
        return timeout <= 0 || elapsed + interval < timeout
    }

    /// Asks the request to validate a download's status, before its file is moved into place.
    fileprivate func acceptsStatus(of response: HTTPURLResponse) -> Bool {
        request.state.withLock { if $0.run === self { $0.result.response = response } }
        return request.statusCodeValidator()
    }

    /// Keeps the body of a rejected download, unless it exceeds the limit.
    fileprivate func keepRejected(_ file: URL?, upTo limit: Int) {
        guard let file, let size = try? file.resourceValues(forKeys: [.fileSizeKey]).fileSize, size <= limit,
            let body = try? Data(readingFrom: file)
        else { return }
        keep(rejectedBody: body)
    }
}

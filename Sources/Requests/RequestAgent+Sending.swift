// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// The way of an attempt: built, sent, judged whether it is to be repeated; the last one goes on to be delivered.

extension RequestAgent {
    /// Builds and sends an attempt.
    func attempt(_ run: RequestRun) {
        guard run.isRunning else { return }
        run.noteBuilding()
        do {
            let built = try build(run)
            guard run.isRunning else { return }
            send(built, run)
        } catch {
            // Nothing was sent, and the next attempt would be no better.
            processingQueue.async { self.conclude(run, RequestAnswer(error: error)) }
        }
    }

    private func send(_ built: BuiltRequest, _ run: RequestRun) {
        if let target = built.target {
            // One that was stopped may still be putting away what it has, from which this one is to go on.
            let mayGo = enterDownload(run, target) { self.send(built, run) }
            guard mayGo, run.isRunning else { return mayGo ? leaveDownload(run, target) : () }
        }
        let manager = currentManager()
        let request = built.target.map { download(built, to: $0, run, manager) } ?? transfer(built, run, manager)
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
        if let file = built.bodyFile {
            request = upload(run) { manager.upload(file, with: built.urlRequest) }
        } else if run.request.uploadProgressBlock != nil, let stream = built.urlRequest.httpBodyStream {
            request = upload(run) { manager.upload(stream, with: built.urlRequest) }
        } else if run.request.uploadProgressBlock != nil, let body = built.urlRequest.httpBody {
            request = upload(run) { manager.upload(body, with: built.urlRequest) }
        } else {
            request = manager.request(built.urlRequest)
        }
        return request.response(queue: processingQueue) { response in
            // Its session lives until here, even if the configuration has another one by now.
            _ = manager
            var answer = RequestAnswer()
            answer.response = response.response
            answer.data = response.data
            answer.error = response.error
            answer.metrics = response.metrics
            self.attemptEnded(run, answer)
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
            built.urlRequest, to: target, options: [.removePreviousFile, .createIntermediateDirectories, .resumePreviousDownload]
        ).validate { _, response, file, _ in
            if run.judgesStatus(of: response) { return .success }
            run.keepRefused(file, upTo: limit)
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
            var answer = RequestAnswer()
            answer.isDownload = true
            answer.response = response.response
            answer.error = response.error
            answer.metrics = response.metrics
            answer.data = run.refusedBody
            if response.error == nil { answer.object = response.destinationURL ?? response.temporaryURL }
            self.attemptEnded(run, answer)
        }
    }

    // MARK: Again?

    /// An attempt is over: counts it, and asks whether there is to be another.
    private func attemptEnded(_ run: RequestRun, _ answer: RequestAnswer) {
        let elapsed = run.elapsed
        let count = run.request.state.withLock { state -> Int? in
            guard state.run === run, state.stage == .running else { return nil }
            state.totalCount += 1
            state.totalTime = elapsed
            state.answer = answer
            return state.totalCount
        }
        guard let count else { return }
        if let metrics = answer.metrics { configuration.collectingMetricsBlock?(run.request, metrics) }
        if let refresher = configuration.tokenRefresher, refresher.isRefused(answer), run.claimReplay() {
            return refresher.refresh(for: run) { isRefreshed in
                self.processingQueue.async {
                    guard isRefreshed else { return self.considerRetry(run, answer, count) }
                    run.noteReplay()
                    self.attempt(run)
                }
            }
        }
        considerRetry(run, answer, count)
    }

    private func considerRetry(_ run: RequestRun, _ answer: RequestAnswer, _ count: Int) {
        guard run.isRunning else { return }
        let request = run.request
        let interval = max(0, request.requestRetryInterval())
        guard run.mayRetry(after: count, interval: interval) else { return conclude(run, answer) }
        let object: Any? = answer.object ?? answer.data
        guard request.requestRetryValidator(answer.response, responseObject: object, error: answer.error) else {
            return conclude(run, answer)
        }
        let isAnswered = Lock(false)
        request.requestRetryProcessor(answer.response, responseObject: object, error: answer.error) { shallRetry in
            let isFirst = isAnswered.withLock { isAnswered in
                defer { isAnswered = true }
                return !isAnswered
            }
            guard isFirst, run.isRunning else { return }
            guard shallRetry else { return self.processingQueue.async { self.conclude(run, answer) } }
            self.configuration.log("retry \(count) after \(interval) s \(request)")
            self.clock.schedule(interval, self.processingQueue) { self.attempt(run) }
        }
    }
}

extension RequestRun {
    /// Whether count and time allow another attempt.
    fileprivate func mayRetry(after count: Int, interval: TimeInterval) -> Bool {
        let limit = request.requestRetryCount()
        guard limit < 0 || count - replays <= limit else { return false }
        let timeout = request.requestRetryTimeout()
        return timeout <= 0 || elapsed + interval < timeout
    }

    /// Asks the request about the status of a download, before its file is put in its place.
    fileprivate func judgesStatus(of response: HTTPURLResponse) -> Bool {
        request.state.withLock { if $0.run === self { $0.answer.response = response } }
        return request.statusCodeValidator()
    }

    /// Keeps what the server said in place of a file, unless it is too much.
    fileprivate func keepRefused(_ file: URL?, upTo limit: Int) {
        guard let file, let size = try? file.resourceValues(forKeys: [.fileSizeKey]).fileSize, size <= limit,
            let body = try? Data(contentsOf: file)
        else { return }
        keep(refusedBody: body)
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading
import Dispatch

// From the first `resume()` to the request of Core: what may have to come before it, and its options.

extension URLSessionTask {
    /// Begins when the earliest date has come and the delegate agrees, and when there is a network.
    func startWhenDue() {
        guard session.knows(self) else { return endUnstarted(with: URLError.of(CurlewError.cancelled, self)) }
        if let date = values.withLock({ $0.earliestBeginDate }) { return wait(until: date) }
        startWhenConnected()
    }

    private func wait(until date: Date) {
        // Clamped, as Dispatch's times overflow.
        let seconds = min(max(date.timeIntervalSinceNow, 0), 10 * 365 * 86_400)
        // Its session retains the task until it has ended, and then this does not, as the date may be far off.
        session.curlew.session.queue.asyncAfter(deadline: .now() + seconds) { [weak self] in
            guard let self, isWanted else { return }
            askAboutDelayedStart()
        }
    }

    private func askAboutDelayedStart() {
        let request = work.request
        guard let request else { return startWhenConnected() }
        typealias Disposition = (URLSession.DelayedRequestDisposition, URLRequest?)
        ask(.delayedRequest) { (delegate: any URLSessionTaskDelegate, task, answer: @escaping Answer<Disposition>) in
            delegate.urlSession(task.session, task: task, willBeginDelayedRequest: request) { answer(($0, $1)) }
        } answered: { [self] answer in
            switch answer {
            case (.cancel, _)?: cancel()
            case (.useNewRequest, let new?)?:
                values.withLock { $0.replacement = new }
                startWhenConnected()
            default: startWhenConnected()
            }
        }
    }

    /// Whether the task is neither cancelled nor complete.
    var isWanted: Bool { values.withLock { $0.state == .running || $0.state == .suspended } }

    private func startWhenConnected() {
        guard session.waitsForConnectivity, let url = destination, !LocalLoad.loads(url) else { return load() }
        let configuration = session.curlew.session.configuration
        guard let wait = ConnectivityWait(for: url, configuration.options) else { return load() }
        values.withLock { $0.wait = wait }
        wait.run(atMost: configuration.timeoutIntervalForResource) { event in
            switch event {
            case .waits:
                self.notify { (delegate: any URLSessionTaskDelegate, task) in
                    delegate.urlSession(task.session, taskIsWaitingForConnectivity: task)
                }
            case .found(let waited):
                self.values.withLock { ($0.wait, $0.waited) = (nil, waited) }
                self.load()
            case .timedOut: self.endUnstarted(with: URLError.of(.timedOut, self, resumeData: self.givenResumeData))
            }
        } isWanted: {
            self.isWanted
        }
    }

    // MARK: The request

    private func load() {
        let replacement = values.withLock { $0.replacement }
        switch work {
        case .request(let original):
            let request = replacement ?? original
            if LocalLoad.loads(request.url) { return LocalLoad(self, request).begin() }
            load(request, nil)
        case .upload(let original, let body): load(upload: replacement ?? original, body)
        case .resumedDownload(let data):
            run { $0.download(resumingWith: data, requestOptions: $1) }
        case .streamed(let original):
            let request = (replacement ?? original).completed(body: nil)
            if LocalLoad.loads(request.url) { return LocalLoad(self, request).begin() }
            var stream: BodyStream?
            run(request) {
                let made = $0.streamRequest(request, options: $1)
                // Before anything else is attached: a body that has no reader is not paused then, but stored.
                stream = made.bodyStream()
                return made
            }
            if let stream { hand(over: .stream(stream)) }
        case .connection(let request): connect(replacement ?? request)
        }
    }

    private func load(upload request: URLRequest, _ body: UploadedBody) {
        guard case .asked = body else { return load(request, body) }
        ask(.bodyStream) { (delegate: any URLSessionTaskDelegate, task, answer: @escaping Answer<Shown<InputStream?>>) in
            delegate.urlSession(task.session, task: task) { answer(Shown($0)) }
        } answered: { [self] answer in
            if let stream = answer?.value ?? request.httpBodyStream { return load(request, .stream(stream)) }
            endUnstarted(with: URLError.of(CurlewError.redirectFailed(reason: .bodyNotRepeatable), self))
        }
    }

    private func load(_ original: URLRequest, _ body: UploadedBody?) {
        let request = original.completed(body: body)
        switch body {
        case .data(let data): run(request) { $0.upload(data, with: request, options: $1) }
        case .file(let url): run(request) { $0.upload(url, with: request, options: $1) }
        case .stream(let stream): run(request) { $0.upload(stream, with: request, options: $1) }
        case .asked, nil:
            if self is URLSessionDownloadTask {
                run(request) { $0.download(request, requestOptions: $1) }
            } else {
                run(request) { $0.request(request, options: $1) }
            }
        }
    }

    /// Makes the request of Core, which starts at once, unless the task was cancelled meanwhile.
    private func run(_ urlRequest: URLRequest? = nil, _ make: (SessionManager, RequestOptions) -> Request) {
        guard isWanted else { return }
        let request = make(session.curlew, options(for: urlRequest))
        var (state, progress) = values.withLock { values in
            values.request = request
            return (values.state, values.progress)
        }
        if let progress { follow(request, with: progress) }
        if hasDelegate { listenForInterimResponses(of: request) }
        // What other threads have called in between found no request. What they call meanwhile does, perhaps before this thread has done
        // what came before that.
        var current = State.running
        while current != state {
            switch state {
            case .suspended: request.suspend()
            case .canceling, .completed: request.cancel()
            case .running: request.resume()
            }
            current = state
            state = values.withLock { $0.state }
        }
        request.whenFinished { self.requestEnded(request) }
    }

    private func options(for request: URLRequest?) -> RequestOptions {
        var options = RequestOptions()
        if let timeout = request?.timeoutInterval, timeout != 60, timeout > 0 { options.connectTimeout = .seconds(min(timeout, 1e9)) }
        let (priority, closures, waited) = values.withLock { ($0.priority, $0.closures, $0.waited) }
        // The time without a network counts for the whole.
        if waited > 0 {
            let whole = session.curlew.session.configuration.timeoutIntervalForResource
            options.totalTimeout = .seconds(min(max(whole - waited, 0.001), 1e9))
        }
        if priority != Self.defaultPriority { options.priority = Int((7 * (1 - min(max(priority, 0), 1))).rounded()) }
        if closures != nil || connectionOwner != nil {
            options.ownership = RequestOwnership(self)
        } else if session.offersToClasses {
            options.ownership = RequestOwnership(self, takesPart: false)
        }
        return options
    }

    private func listenForInterimResponses(of request: Request) {
        request.noteInterimResponses { [weak self] head in
            self?.notify { (delegate: any URLSessionTaskDelegate, task) in
                guard let url = task.currentRequest?.url,
                    let response = HTTPURLResponse(
                        url: url, statusCode: head.statusCode, httpVersion: head.httpVersion, headerFields: head.headers.dictionary)
                else { return }
                delegate.urlSession(task.session, task: task, didReceiveInformationalResponse: response)
            }
        }
    }
}

extension URLRequest {
    /// The request with the content type that a server expects of a body without one, as Apple's sessions send it.
    fileprivate func completed(body: URLSessionTask.UploadedBody?) -> URLRequest {
        let hasBody = body != nil || httpBody != nil || httpBodyStream != nil
        guard hasBody, httpMethod == "POST", url != nil, value(forHTTPHeaderField: "Content-Type") == nil else { return self }
        var request = self
        request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
        return request
    }
}

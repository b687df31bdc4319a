// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewDownloads
import Dispatch

/// Sends the planned request and prints the response.
struct Transfer {
    let arguments: Arguments
    let plan: RequestPlan
    private let setup: TransferSetup
    private var manager: SessionManager { setup.manager }
    /// The end of `--deadline`.
    private let end: ContinuousClock.Instant?
    /// The largest body that is compared, as recorded ones are no larger.
    private static let largestCompared = 64 << 20

    init(arguments: Arguments, plan: RequestPlan, setup: TransferSetup) {
        self.arguments = arguments
        self.plan = plan
        self.setup = setup
        end = arguments.deadline.map { .now + $0.duration }
    }

    /// Sends the request and returns the outcome.
    func run() async -> Outcome {
        if let outcome = checkFiles() { return outcome }
        let outcome = if let path = arguments.download { await download(to: path) } else { await stream() }
        return await setup.finish() ?? outcome
    }

    /// Checks the files before sending, because a request may have side effects. The library checks them again on use.
    private func checkFiles() -> Outcome? {
        if let outcome = setup.checkFiles() { return outcome }
        guard let path = arguments.download else { return nil }
        var status = stat()
        guard lstat(path, &status) == 0, !(asksAboutFile && status.st_mode & S_IFMT == S_IFREG) else { return nil }
        guard arguments.replacesFile else {
            return Self.existing(path)
        }
        // Only regular files and links are replaced: the library would remove a directory, or replace a device by a file.
        guard status.st_mode & S_IFMT == S_IFREG || status.st_mode & S_IFMT == S_IFLNK else {
            return Outcome(status: .file, message: "\(path): not a regular file, so --force can't replace it")
        }
        return nil
    }

    /// Whether the server is asked about a file that is there.
    private var asksAboutFile: Bool { arguments.resumesDownload && plan.method == .get && plan.body == .none }

    // MARK: To standard output

    private func stream() async -> Outcome {
        var attempt: UInt = 0
        while true {
            let (outcome, delay) = await attemptToStream(isLast: attempt >= arguments.retry ?? 0, attempt: attempt)
            guard let delay else { return outcome }
            attempt += 1
            Retry.note(outcome, attempt, delay)
            guard (try? await Task.sleep(for: delay)) != nil else { return outcome }
        }
    }

    /// Returns the outcome, and the delay before another attempt; `nil` for none.
    private func attemptToStream(isLast: Bool, attempt: UInt) async -> (Outcome, Duration?) {
        let request = setup.request()
        var printer = BodyPrinter(
            isTerminal: Output.standard.isTerminal, isRaw: arguments.pretty == Pretty.none || arguments.rawOutput,
            isPretty: arguments.formats(isTerminal: false), isEscaped: Output.standard.isTerminal && !arguments.rawOutput,
            style: setup.style, write: { try Output.standard.write($0) })
        var filter = arguments.path.map { BodyFilter($0) }
        let parts = arguments.parts(isTerminal: Output.standard.isTerminal, method: plan.method)
        let isBodyShown = parts.unicodeScalars.contains("b")
        var compared: Data? = arguments.diff ? Data() : nil
        var hasPiece = false
        // Why a failure that may be repeated is not.
        var refusal: String?
        do {
            var isShown = true
            for try await piece in request.bodyStream() {
                if !hasPiece, let delay = retryDelay(request, isLast: isLast, attempt: attempt, &refusal) {
                    request.cancel()
                    return (Outcome(request.response), delay)
                }
                try setup.printExchanges(request.responseHead)
                hasPiece = true
                compared? += piece
                if let count = compared?.count, count > Self.largestCompared {
                    throw Replay.Difference(text: "the response has more than \(Self.largestCompared >> 20) MiB, and is not compared")
                }
                guard isBodyShown else { continue }
                guard filter == nil else {
                    try filter?.append(piece)
                    continue
                }
                isShown = try printer.print(piece, contentType: request.response?.value(forHTTPHeaderField: "Content-Type"))
                if !isShown { break }
            }
            guard isShown else { return (rejectBinary(request), nil) }
            if !hasPiece, let delay = retryDelay(request, isLast: isLast, attempt: attempt, &refusal) {
                return (Outcome(request.response), delay)
            }
            try setup.printExchanges(request.responseHead)
            if isBodyShown {
                try printer.finish()
                try write(filter)
            }
            if parts.unicodeScalars.contains("m") {
                if printer.isLineOpen { try Output.standard.write(Data("\n".utf8)) }
                try setup.printMeta(await setup.metrics(of: request))
            }
            if let compared {
                try await setup.compare(request.response, compared)
                return (.success, nil)
            }
        } catch let error as Output.Failure {
            request.cancel()
            return (Outcome(error), nil)
        } catch let error as BodyFilter.Failure {
            request.cancel()
            // The status says more than that its page is not what was asked for.
            let outcome = Outcome(request.response)
            return (outcome.status == .success ? error.outcome : outcome, nil)
        } catch {
            if !hasPiece, !isLast, Retry.isTransient(error, plan) {
                switch Retry.next(attempt: attempt, response: nil, end: end) {
                case .after(let delay): return (Outcome(error), delay)
                case .never(let reason): refusal = reason
                }
            }
            // The part of the body that was received is printed.
            do {
                try setup.printExchanges(request.responseHead)
                if isBodyShown { try printer.finish() }
            } catch { return (Outcome(error), nil) }
            return (Outcome(error).notRetried(refusal), nil)
        }
        return (Outcome(request.response).notRetried(refusal), nil)
    }

    private func write(_ filter: BodyFilter?) throws {
        guard let filter else { return }
        let isTerminal = Output.standard.isTerminal
        try filter.finish(
            isFormatted: arguments.formats(isTerminal: isTerminal), isEscaped: isTerminal && !arguments.rawOutput, style: setup.style
        ) { try Output.standard.write($0) }
    }

    private func retryDelay(_ request: DataRequest, isLast: Bool, attempt: UInt, _ refusal: inout String?) -> Duration? {
        guard !isLast, let response = request.response, Retry.isTransient(response, plan) else { return nil }
        switch Retry.next(attempt: attempt, response: response, end: end) {
        case .after(let delay): return delay
        case .never(let reason):
            refusal = reason
            return nil
        }
    }

    private func rejectBinary(_ request: DataRequest) -> Outcome {
        let response = request.response
        request.cancel()
        var outcome = Outcome(response)
        let type = response?.value(forHTTPHeaderField: "Content-Type").map { " (\($0))" } ?? ""
        let note = "the body is binary\(type) and not shown on a terminal: use --raw-output, --download FILE or a pipe"
        outcome.message = outcome.message.map { "\($0); \(note)" } ?? note
        return outcome
    }

    // MARK: To a file

    private func download(to path: String) async -> Outcome {
        let url = URL(fileURLWithPath: path)
        if let outcome = await checkFinished(url, path) { return outcome }
        var headers = setup.headers
        // A stream with a Content-Length is sent unchunked.
        switch plan.body {
        case .file, .standardInput: if let length = setup.body.length { headers.update(name: "Content-Length", value: "\(length)") }
        case .none, .bytes, .stream, .parts: break
        }
        let request = manager.download(
            plan.url, method: plan.method, parameters: [:], encoding: setup.body, headers: headers,
            interceptor: arguments.retry.map { PrintedRetries(limit: $0, plan, end: end) }, to: url,
            options: downloadOptions
        ).validate(statusCode: 200..<300)
        if let (user, password) = setup.credential { request.authenticate(user: user, password: password, persistence: .none) }
        let progress = ProgressLine(output: .error)
        if Output.error.isTerminal {
            request.downloadProgress { progress.update(completed: $0.completedUnitCount, total: $0.totalUnitCount) }
        }
        let response = await request.serializingURL().response
        // Runs after the last call of the progress closure.
        manager.session.configuration.callbackQueue.sync { progress.end() }
        do {
            try setup.printExchanges(request.responseHead)
            if arguments.meta || (arguments.print ?? "").unicodeScalars.contains("m") { try setup.printMeta(response.metrics) }
            _ = try response.result.get()
            if request.isFileUnchanged { Self.noteUnchanged(path) }
            return .success
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            return Self.existing(path)
        } catch {
            return Outcome(error)
        }
    }

    private static func noteUnchanged(_ path: String) {
        Output.error.note("\(path): the server has no newer version; nothing was downloaded")
    }

    private static func existing(_ path: String) -> Outcome {
        Outcome(status: .file, message: "\(path): file exists; use --force to replace it")
    }

    /// Asks whether the file of `--continue` is what the server has, as a segmented download does, which knows it also where the server
    /// ignores conditions; `nil` if it has to be downloaded.
    private func checkFinished(_ url: URL, _ path: String) async -> Outcome? {
        // A request of its own, because a response that has a body is given up. A challenge needs the download's request.
        guard asksAboutFile, setup.credential == nil, access(path, F_OK) == 0 else { return nil }
        var options = SegmentedDownload.Options()
        options.headers = setup.headers
        options.retryLimit = 0
        do {
            let result = try await manager.segmentedDownload(plan.url, to: url, options: options).run()
            try setup.printExchanges()
            if result.isUnchanged { Self.noteUnchanged(path) }
            return .success
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            return arguments.replacesFile ? nil : Self.existing(path)
        } catch {
            return arguments.retry ?? 0 > 0 ? nil : Outcome(error)
        }
    }

    private var downloadOptions: DownloadRequest.DownloadOptions {
        var options: DownloadRequest.DownloadOptions = []
        if arguments.replacesFile { options.insert(.removePreviousFile) }
        if arguments.resumesDownload { options.insert(.resumePreviousDownload) }
        return options
    }
}

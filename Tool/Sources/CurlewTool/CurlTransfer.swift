// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Sends the request of a command of curl, and writes what that asks for.
final class CurlTransfer: @unchecked Sendable {  // used by one task at a time
    private let arguments: Arguments
    private let plan: RequestPlan
    private let setup: TransferSetup
    private let extras: CurlExtras
    private let sink: CurlSink
    private let begin = ContinuousClock.now
    private var report = CurlReport()
    private var headOutput: Output?

    init(arguments: Arguments, plan: RequestPlan, setup: TransferSetup, extras: CurlExtras) {
        self.arguments = arguments
        self.plan = plan
        self.setup = setup
        self.extras = extras
        sink = CurlSink(extras.output)
        report.url = plan.url
        report.method = plan.method.rawValue
        report.number = extras.number
        report.referer = plan.headers["Referer"]
        report.effectiveURL = plan.url
    }

    /// Sends the request and returns the outcome.
    func run() async -> Outcome {
        if let outcome = setup.checkFiles(extras.files) { return outcome }
        guard !sink.isSkipped else { return .success }
        if extras.trustsLocations { setup.trustLocations() }
        if let schemes = extras.challenges { setup.answerOnly(schemes) }
        var outcome = openHeadFile() ?? .success
        if outcome.status == .success { outcome = await attempts() }
        report.outcome = outcome
        let isFailure = isFailure(outcome)
        report.isFailure = isFailure
        sink.finish(isFailed: isFailure, modified: modified)
        report.fileName = sink.path
        if let headOutput, headOutput.descriptor > 2 { close(headOutput.descriptor) }
        do {
            try saveTag()
            try extras.writeOut?.write(report)
        } catch {
            return Outcome(error)
        }
        return await setup.finish() ?? outcome
    }

    private func isFailure(_ outcome: Outcome) -> Bool {
        switch outcome.status {
        case .success: false
        case .clientError, .serverError: extras.failsOnErrors
        case .redirect: lastError != nil
        default: true
        }
    }

    private func openHeadFile() -> Outcome? {
        guard let path = extras.headFile else { return nil }
        if path == "-" {
            headOutput = .standard
            return nil
        }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { return Outcome(FileFailure(path: path, code: errno)) }
        headOutput = Output(descriptor: descriptor)
        return nil
    }

    /// Keeps the entity tag of the response.
    private func saveTag() throws {
        guard let path = extras.etagFile, let head = report.heads.last, head.statusCode < 400, head.statusCode != 304,
            let tag = head.value(for: "ETag")
        else { return }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw FileFailure(path: path, code: errno) }
        defer { close(descriptor) }
        try Output(descriptor: descriptor).write(Data("\(tag)\n".utf8))
    }

    private var modified: Date? { report.heads.last?.value(for: "Last-Modified").flatMap(CurlTimeCondition.date) }

    // MARK: Attempts

    private func attempts() async -> Outcome {
        var number: UInt = 0
        while true {
            let outcome = await attempt()
            guard number < extras.retries.limit, let delay = delay(outcome, number) else { return outcome }
            number += 1
            report.retries = Int(number)
            sink.reset()
            if !extras.isSilent { Retry.note(outcome, number, delay) }
            guard (try? await Task.sleep(for: delay)) != nil else { return outcome }
        }
    }

    private var lastError: (any Error)?
    private var lastResponse: HTTPURLResponse?

    /// The delay before another attempt, as curl has it: a second, and twice as long each time; `nil` for none.
    private func delay(_ outcome: Outcome, _ number: UInt) -> Duration? {
        guard outcome.status != .success, outcome.status != .file, !isReadOnce, !Task.isCancelled else { return nil }
        let status = lastError == nil ? report.heads.last?.statusCode ?? 0 : 0
        let isTransient =
            lastError.map(isTransient)
            ?? ([408, 429, 500, 502, 503, 504, 522, 524].contains(status) || extras.retries.repeatsAllErrors && extras.failsOnErrors)
        guard isTransient else { return nil }
        let usual = extras.retries.delay ?? .seconds(min(1 << min(number, 10), 600))
        let asked = lastError == nil ? lastResponse.flatMap { RetryAfter($0)?.delay } : nil
        let delay = asked ?? usual
        if let window = extras.retries.window, ContinuousClock.now + delay >= begin + window { return nil }
        return delay
    }

    private var isReadOnce: Bool { setup.body.isReadOnce }

    private func isTransient(_ error: any Error) -> Bool {
        if extras.retries.repeatsAllErrors { return !(error is Output.Failure || error is FileFailure) }
        guard case CurlewError.transferFailed(let failure) = error else { return false }
        if failure.isTimeout || failure.kind == .nameResolution { return true }
        return failure.kind == .connect && extras.retries.repeatsRefused
    }

    private func attempt() async -> Outcome {
        lastError = nil
        let headers = sink.offset > 0 ? [("Range", "bytes=\(sink.offset)-")] : []
        setup.beginAttempt()
        let request = setup.request(adding: headers, bytesPerSecond: extras.rate)
        var writer = Writer(self, request)
        let watch = SpeedWatch(extras.slowLimit) { request.cancel() }
        defer { watch.end() }
        (request as? UploadRequest)?.uploadProgress { watch.sent(total: $0.completedUnitCount) }
        var pace = Pace(extras.rate)
        do {
            for try await piece in request.bodyStream() {
                watch.count(piece.count)
                try writer.begin()
                try writer.write(piece)
                try await pace.wait(for: piece.count)
            }
            try writer.begin()
            try writer.finish()
        } catch {
            request.cancel()
            let outcome = watch.isTooSlow ? watch.outcome : Outcome(error)
            lastError = error
            // What was received of the heads and the body is written.
            try? writer.begin()
            try? writer.finish()
            await note(request)
            return outcome
        }
        await note(request)
        if sink.offset > 0, request.response?.statusCode == 416 { return .success }
        return Outcome(request.response)
    }

    /// Notes what is reported.
    private func note(_ request: DataRequest) async {
        let entries = setup.attempt
        report.heads = entries.compactMap(\.head)
        report.effectiveURL = entries.last?.exchange.url ?? plan.url
        report.method = entries.last.map { "\($0.exchange.method)" } ?? report.method
        report.metrics = await setup.metrics(of: request).transactionMetrics
        report.delivered = sink.written
        lastResponse = request.response
        if let response = request.response, (300..<400).contains(response.statusCode),
            let location = response.value(forHTTPHeaderField: "Location"), let base = URL(string: report.effectiveURL)
        {
            report.redirectURL = URL(string: location, relativeTo: base)?.absoluteString
        }
    }

    // MARK: Writing

    /// What an attempt writes.
    private struct Writer {
        let transfer: CurlTransfer
        let request: DataRequest
        private var hasBegun = false
        private var isWritten = true
        private var received: Int64 = 0
        private var printer: BodyPrinter?

        init(_ transfer: CurlTransfer, _ request: DataRequest) {
            self.transfer = transfer
            self.request = request
        }

        /// Writes the heads, once the last of them is known.
        mutating func begin() throws {
            guard !hasBegun else { return }
            hasBegun = true
            let (extras, sink) = (transfer.extras, transfer.sink)
            try transfer.setup.printExchanges()
            let heads = transfer.setup.attempt.compactMap(\.head)
            let last = heads.last
            let text = heads.map(\.text).joined()
            if let output = transfer.headOutput { try output.write(Data(text.utf8)) }
            try check(last)
            isWritten = isBodyWritten(last)
            if extras.writesHeads {
                try sink.begin(last, url: transfer.plan.url)
                let shown = sink.isFile || !Output.standard.isTerminal ? text : TerminalText.escaped(text)
                try sink.write(Data(shown.utf8))
            }
            guard !sink.isFile else { return }
            printer = BodyPrinter(
                isTerminal: Output.standard.isTerminal, isRaw: false, isPretty: false, style: transfer.setup.style,
                write: { try sink.write($0) })
        }

        /// Whether the file has all of it already, as far as the sizes say.
        private func isComplete(_ head: ResponseHead) -> Bool {
            head.statusCode == 200 && head.value(for: "Content-Length") == "\(transfer.sink.offset)"
        }

        /// Whether the body is what follows the bytes of the file.
        private func isContinued(_ head: ResponseHead) -> Bool {
            head.statusCode == 206 && head.value(for: "Content-Range")?.lowercased().hasBytePrefix("bytes \(transfer.sink.offset)-") == true
        }

        private mutating func check(_ head: ResponseHead?) throws {
            guard let head else { return }
            if let limit = transfer.extras.maximumSize, let text = head.value(for: "Content-Length"), let length = Int64(text),
                length > limit
            {
                isWritten = false
                throw Refusal.tooLarge(limit)
            }
            // The status of an error says more.
            if transfer.sink.offset > 0, head.statusCode < 300, !isContinued(head), !isComplete(head) {
                isWritten = false
                throw Refusal.noRanges
            }
        }

        private func isBodyWritten(_ head: ResponseHead?) -> Bool {
            guard let head else { return true }
            if transfer.extras.hidesErrors, head.statusCode >= 400 { return false }
            // Not even an empty body: the file is what the server has.
            if head.statusCode == 304 { return false }
            if transfer.sink.offset > 0, !isContinued(head) { return false }
            guard let condition = transfer.extras.condition, head.statusCode == 200, let text = head.value(for: "Last-Modified"),
                let date = CurlTimeCondition.date(text)
            else { return true }
            return condition.isMet(by: date)
        }

        mutating func write(_ piece: Data) throws {
            received += Int64(piece.count)
            if let limit = transfer.extras.maximumSize, received > limit { throw Refusal.tooLarge(limit) }
            guard isWritten else { return }
            try transfer.sink.begin(request.responseHead, url: transfer.plan.url)
            guard printer != nil else { return try transfer.sink.write(piece) }
            guard try printer?.print(piece, contentType: request.response?.value(forHTTPHeaderField: "Content-Type")) == false else {
                return
            }
            throw Refusal.binary
        }

        mutating func finish() throws {
            guard isWritten else { return }
            // Also an empty body makes a file.
            if request.response != nil { try transfer.sink.begin(request.responseHead, url: transfer.plan.url) }
            try printer?.finish()
        }
    }

    /// Why a response is not written.
    enum Refusal: Error, Equatable {
        case tooLarge(Int64)
        case noRanges
        case binary

        var message: String {
            switch self {
            case .tooLarge(let limit): "the body has more than the \(limit) bytes of --max-filesize"
            case .noRanges: "the server sends no part of the file (Range), so that --continue-at can't resume it"
            case .binary: "the body is binary and not shown on a terminal: use -o FILE or a pipe"
            }
        }
    }
}

extension ResponseHead {
    /// The head as curl writes it, with those of interim responses before it.
    fileprivate var text: String {
        let lines = ["\(httpVersion) \(statusCode) \(reasonPhrase)"] + headers.map { "\($0.name): \($0.value)" }
        return interimResponses.map(\.text).joined() + lines.map { "\($0)\r\n" }.joined() + "\r\n"
    }
}

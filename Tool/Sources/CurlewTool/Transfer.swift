// SPDX-License-Identifier: Apache-2.0
import Curlew
import Dispatch

/// Sends the planned request and prints the response.
struct Transfer {
    /// A request body in a form that both streamed requests and downloads accept.
    private struct PlannedBody: ParameterEncoding {
        let body: RequestPlan.Body

        func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
            var request = try urlRequest.asURLRequest()
            switch body {
            case .none: break
            case .bytes(let data): request.httpBody = data
            case .file(let path): request.httpBodyStream = InputStream(fileAtPath: path)
            case .standardInput: request.httpBodyStream = DescriptorStream(descriptor: 0)
            }
            return request
        }
    }

    let arguments: Arguments
    let plan: RequestPlan
    private let manager: SessionManager

    init(arguments: Arguments, plan: RequestPlan) {
        self.arguments = arguments
        self.plan = plan
        manager = SessionManager(configuration: Self.configuration(arguments))
    }

    private static func configuration(_ arguments: Arguments) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "curlew.tool")
        if let timeout = arguments.connectTimeout { configuration.connectTimeout = timeout }
        if let limit = arguments.maximumRedirects { configuration.redirects.limit = limit }
        if arguments.isInsecure { configuration.tls.verifiesServer = false }
        configuration.tls.certificateAuthorityFile = arguments.certificateAuthorityFile
        if arguments.usesHTTP1 { configuration.httpVersion = .http1 }
        configuration.decodesContent = arguments.decodes
        return configuration
    }

    /// Sends the request and returns the outcome.
    func run() async -> Outcome {
        if let outcome = checkFiles() { return outcome }
        if arguments.isVerbose { showRequest() }
        if let path = arguments.download { return await download(to: path) }
        return await stream()
    }

    /// Checks the files before sending, because a request may have side effects. The library checks them again on use.
    private func checkFiles() -> Outcome? {
        for path in [arguments.certificateAuthorityFile, bodyPath].compactMap({ $0 }) {
            guard access(path, R_OK) == 0 else { return Self.fileOutcome(path, errno) }
            if Self.isDirectory(path) { return Self.fileOutcome(path, EISDIR) }
        }
        guard let path = arguments.download else { return nil }
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        guard arguments.replacesFile else {
            return Outcome(status: .file, message: "\(path): file exists; use --force to replace it")
        }
        // Only regular files and links are replaced: the library would remove a directory, or replace a device by a file.
        guard status.st_mode & S_IFMT == S_IFREG || status.st_mode & S_IFMT == S_IFLNK else {
            return Outcome(status: .file, message: "\(path): not a regular file, so --force can't replace it")
        }
        return nil
    }

    private var bodyPath: String? {
        if case .file(let path) = plan.body { path } else { nil }
    }

    private static func fileOutcome(_ path: String, _ code: Int32) -> Outcome {
        Outcome(status: .file, message: "\(path): \(String(cString: strerror(code)))")
    }

    private static func isDirectory(_ path: String) -> Bool {
        var isDirectory: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory.boolValue
    }

    // MARK: To standard output

    private func stream() async -> Outcome {
        let request = makeStreamRequest()
        var printer = BodyPrinter(
            isTerminal: Output.standard.isTerminal, isRaw: arguments.isRaw, isPretty: arguments.isPretty,
            write: { try Output.standard.write($0) })
        var head = HeadPrinter(arguments: arguments)
        do {
            defer { head.note(request.response) }
            var isShown = true
            for try await piece in request.bodyStream() {
                try head.print(request.response)
                isShown = try printer.print(piece, contentType: request.response?.value(forHTTPHeaderField: "Content-Type"))
                if !isShown { break }
            }
            guard isShown else { return rejectBinary(request) }
            try head.print(request.response)
            try printer.finish()
        } catch let error as Output.Failure {
            request.cancel()
            return Outcome(error)
        } catch {
            // The part of the body that was received is printed.
            do { try printer.finish() } catch { return Outcome(error) }
            return Outcome(error)
        }
        if arguments.isVerbose { await showMetrics(request) }
        return Outcome(request.response)
    }

    private func makeStreamRequest() -> DataRequest {
        if case .file(let path) = plan.body {
            return manager.upload(URL(fileURLWithPath: path), to: plan.url, method: plan.method, headers: plan.headers)
        }
        return manager.streamRequest(
            plan.url, method: plan.method, parameters: [:], encoding: PlannedBody(body: plan.body), headers: plan.headers)
    }

    private func rejectBinary(_ request: DataRequest) -> Outcome {
        let response = request.response
        request.cancel()
        var outcome = Outcome(response)
        let type = response?.value(forHTTPHeaderField: "Content-Type").map { " (\($0))" } ?? ""
        let note = "the body is binary\(type) and not shown on a terminal: use --raw, --download FILE or a pipe"
        outcome.message = outcome.message.map { "\($0); \(note)" } ?? note
        return outcome
    }

    // MARK: To a file

    private func download(to path: String) async -> Outcome {
        let url = URL(fileURLWithPath: path)
        var headers = plan.headers
        // A stream with a Content-Length is sent unchunked.
        if let bodyPath, let size = try? FileManager.default.attributesOfItem(atPath: bodyPath)[.size] as? Int64 {
            headers.update(name: "Content-Length", value: "\(size)")
        }
        let request = manager.download(
            plan.url, method: plan.method, parameters: [:], encoding: PlannedBody(body: plan.body), headers: headers, to: url,
            options: downloadOptions
        ).validate(statusCode: 200..<300)
        let progress = ProgressLine(output: .error)
        if Output.error.isTerminal {
            request.downloadProgress { progress.update(completed: $0.completedUnitCount, total: $0.totalUnitCount) }
        }
        let response = await request.serializingURL().response
        // Runs after the last call of the progress closure.
        manager.session.configuration.callbackQueue.sync { progress.end() }
        var head = HeadPrinter(arguments: arguments)
        head.note(response.response)
        if arguments.isVerbose { show(response.metrics) }
        do {
            try head.print(response.response)
            _ = try response.result.get()
            if request.isFileUnchanged { Output.error.note("\(path): the server has no newer version; nothing was downloaded") }
            return .success
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            return Outcome(status: .file, message: "\(path): file exists; use --force to replace it")
        } catch {
            return Outcome(error)
        }
    }

    private var downloadOptions: DownloadRequest.DownloadOptions {
        var options: DownloadRequest.DownloadOptions = []
        if arguments.replacesFile { options.insert(.removePreviousFile) }
        if arguments.resumesDownload { options.insert(.resumePreviousDownload) }
        return options
    }

    // MARK: --verbose

    private func showRequest() {
        let host = URL(string: plan.url).map { ($0.host ?? "") + ($0.port.map { ":\($0)" } ?? "") } ?? ""
        var lines = ["\(plan.method) \(VerboseText.target(plan.url))"]
        if plan.headers["Host"] == nil { lines.append("Host: \(host)") }
        lines += plan.headers.map { VerboseText.line($0.name, $0.value) }
        if case .bytes(let data) = plan.body { lines.append("Content-Length: \(data.count)") }
        for line in lines { Output.error.note("> \(line)") }
        Output.error.note(">")
    }

    private func showMetrics(_ request: DataRequest) async {
        show(await request.serializingResponse(using: DataResponseSerializer { _, _, _, _ in .success(()) }).response.metrics)
    }

    private func show(_ metrics: TaskMetrics) {
        guard let last = metrics.last else { return }
        var parts = last.remoteAddress.map { ["\($0):\(last.remotePort ?? 0)"] } ?? []
        if let version = last.httpVersion { parts.append(version.rawValue) }
        if let version = last.tlsVersion { parts.append(version) }
        if metrics.redirectCount > 0 { parts.append("redirects: \(metrics.redirectCount)") }
        parts.append("\(last.responseBodyBytes) bytes of body")
        parts.append("\(Int((last.total / .milliseconds(1)).rounded())) ms")
        Output.error.note("* \(parts.joined(separator: ", "))")
    }
}

/// Prints a response's head once, as soon as it is available.
private struct HeadPrinter {
    private let isOnOutput: Bool
    private var isOnError: Bool
    private var isPrinted = false

    init(arguments: Arguments) {
        isOnOutput = arguments.printsHead || arguments.method == "HEAD"
        isOnError = arguments.isVerbose
    }

    /// Prints the head to the outputs that were asked for.
    mutating func print(_ response: HTTPURLResponse?) throws {
        note(response)
        guard isOnOutput, !isPrinted, let response else { return }
        isPrinted = true
        let lines = ["HTTP \(response.statusText)"] + response.sortedFields.map { "\($0.name): \($0.value)" }
        let text = lines.map { (Output.standard.isTerminal ? SafeText.escaped($0) : $0) + "\n" }.joined() + "\n"
        try Output.standard.write(Data(text.utf8))
    }

    /// Prints the head to standard error, for `--verbose`.
    mutating func note(_ response: HTTPURLResponse?) {
        guard isOnError, let response else { return }
        isOnError = false
        Output.error.note("< \(response.statusText)")
        for (name, value) in response.sortedFields { Output.error.note("< \(VerboseText.line(name, value))") }
        Output.error.note("<")
    }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewDownloads
import CurlewURLLoading

/// Requests to a misbehaving server, sent in order by one session.
struct HostileCase: Decodable {
    let steps: [HostileStep]
    /// A directory for files.
    let directory: String?

    private enum CodingKeys: String, CodingKey {
        case steps
        case directory = "data_dir"
    }

    struct Answer: Encodable {
        var steps: [HostileStep.Outcome] = []
    }

    /// Sends the requests. Meanwhile the same session sends others to a healthy URL, if CURLEW_KIT_HEALTHY names one, or
    /// CURLEW_KIT_HEALTHY_HTTP2 for HTTP/2. Those must not be affected.
    func run() async throws -> Answer {
        guard let first = steps.first else { return Answer() }
        let manager = SessionManager(configuration: makeConfiguration(first))
        defer { manager.invalidateAndCancel() }
        let name = first.http2 == true ? "CURLEW_KIT_HEALTHY_HTTP2" : "CURLEW_KIT_HEALTHY"
        guard let healthy = ProcessInfo.processInfo.environment[name] else { return try await run(manager) }
        let company = Task { try await Self.request(healthy, manager) }
        let answer = try await run(manager)
        company.cancel()
        guard case .failure(let error) = await company.result, !(error is CancellationError) else { return answer }
        return Answer(steps: [HostileStep.Outcome(ok: false, error: "a healthy transfer noticed: \(error)", kind: "company")])
    }

    /// Sends requests, twenty at a time, until cancelled.
    private static func request(_ url: String, _ manager: SessionManager) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    while !Task.isCancelled {
                        let response = await manager.request(url).validate().serializingData().response
                        if let error = response.error, !Task.isCancelled { throw error }
                        try await Task.sleep(for: .milliseconds(20))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func run(_ manager: SessionManager) async throws -> Answer {
        let directory = directory.map { URL(fileURLWithPath: $0) } ?? FileManager.default.temporaryDirectory
        var answer = Answer()
        for (index, step) in steps.enumerated() {
            if let delay = step.delay { try await Task.sleep(for: .seconds(delay)) }
            answer.steps.append(await step.run(manager, file: directory.appendingPathComponent("body\(index)")))
        }
        return answer
    }

    /// Makes the configuration from the client settings, which are the same in all steps of a case.
    private func makeConfiguration(_ first: HostileStep) -> SessionConfiguration {
        var configuration = Driver.makeConfiguration()
        if let proxy = first.proxy { configuration.proxy = .url(proxy) }
        if first.http2 == true { configuration.httpVersion = .http2PriorKnowledge }
        // A case without a limit has none: an announced length of 8 EiB is then treated as a truncated body.
        configuration.maximumBodySize = steps.compactMap(\.maxBody).min() ?? .max
        if steps.contains(where: { $0.cookies == true }) {
            configuration.cookieStorage = URLSessionConfiguration.ephemeral.httpCookieStorage
        }
        configuration.redirects.limit = first.follow == true ? first.maxRedirects ?? 20 : 0
        configuration.decodesContent = first.decode == true
        configuration.totalTimeout = steps.map { .seconds($0.timeout ?? 3) }.max()
        return configuration
    }
}

/// One of the requests of a case.
struct HostileStep: Decodable {
    let method: String
    let url: String
    let headers: [[String]]?
    let body: String?
    let bodyBytes: Int?
    let timeout: Double?
    let follow: Bool?
    let maxRedirects: Int?
    let maxBody: Int?
    let retries: UInt?
    let user: [String]?
    let authScheme: String?
    let cookies: Bool?
    let decode: Bool?
    let download: Bool?
    let segments: Int?
    let have: Int?
    let havePath: String?
    let http2: Bool?
    let proxy: String?
    let delay: Double?

    struct Outcome: Encodable {
        var ok: Bool
        var status: Int?
        var bodyBase64: String?
        var error: String?
        var kind: String?
        var bytes: Int?
    }

    func run(_ manager: SessionManager, file: URL) async -> Outcome {
        if let segments, download == true { return await runSegments(segments, manager, file: file) }
        if download == true { return await runDownload(manager, file: file) }
        let request = makeRequest(manager)
        if let user, user.count == 2 { authenticate(request, user[0], user[1], manager) }
        // A status is a failure for a retrier only if it is validated.
        if retries != nil { request.validate() }
        let response = await request.serializingData().response
        return outcome(response.error, response.response?.statusCode, response.data)
    }

    /// Provides the credential for the scheme named by the case only; for any scheme of the server's challenge if it names none.
    private func authenticate(_ request: DataRequest, _ user: String, _ password: String, _ manager: SessionManager) {
        guard let authScheme else {
            request.authenticate(user: user, password: password)
            return
        }
        let methods = ["basic": NSURLAuthenticationMethodHTTPBasic, "digest": NSURLAuthenticationMethodHTTPDigest]
        let method = methods[authScheme.lowercased()]
        manager.delegate.taskDidReceiveChallenge = { _, _, challenge, completion in
            guard challenge.protectionSpace.authenticationMethod == method, challenge.previousFailureCount == 0 else {
                return completion(.rejectProtectionSpace, nil)
            }
            completion(.useCredential, URLCredential(user: user, password: password, persistence: .none))
        }
    }

    private var fields: HTTPHeaders {
        HTTPHeaders((headers ?? []).filter { $0.count == 2 }.map { HTTPHeader(name: $0[0], value: $0[1]) })
    }

    private var policy: RetryPolicy? {
        retries.map { RetryPolicy(retryLimit: $0, exponentialBackoffScale: 0.05) }
    }

    private func makeRequest(_ manager: SessionManager) -> DataRequest {
        guard let method = HTTPMethod(rawValue: method) else { return manager.request("") }
        let interceptor = policy.map { Interceptor(adapters: [], retriers: [$0]) }
        let bytes = bodyBytes.map { Data(repeating: UInt8(ascii: "x"), count: $0) } ?? body.flatMap { $0.isEmpty ? nil : Data($0.utf8) }
        guard let bytes else { return manager.request(url, method: method, headers: fields, interceptor: interceptor) }
        return manager.upload(bytes, to: url, method: method, headers: fields, interceptor: interceptor)
    }

    private func runSegments(_ count: Int, _ manager: SessionManager, file: URL) async -> Outcome {
        var options = SegmentedDownload.Options()
        options.segments = count
        // The kit's files are small.
        options.minimumSegmentSize = 16 << 10
        options.retryLimit = Int(retries ?? 0)
        options.replacesFile = true
        options.headers = fields
        do {
            _ = try await manager.segmentedDownload(url, to: file, options: options).run()
            return outcome(nil, 200, try Data(contentsOf: file))
        } catch {
            return outcome(error, nil, nil)
        }
    }

    private func runDownload(_ manager: SessionManager, file: URL) async -> Outcome {
        let options: DownloadRequest.DownloadOptions = [.resumePreviousDownload, .removePreviousFile]
        var left = retries ?? 0
        do {
            if let have, let havePath { try place(have, of: havePath, for: file) }
        } catch {
            return Outcome(ok: false, error: "\(error)", kind: "driver")
        }
        while true {
            let response = await manager.download(url, headers: fields, to: file, options: options).validate().serializingURL().response
            if response.error == nil { return outcome(nil, response.response?.statusCode, try? Data(contentsOf: file)) }
            if left == 0 { return outcome(response.error, response.response?.statusCode, nil, kept: length(of: partFile(of: file))) }
            left -= 1
        }
    }

    private func partFile(of file: URL) -> URL {
        file.deletingLastPathComponent().appendingPathComponent(".\(file.lastPathComponent).part")
    }

    private func length(of file: URL) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
        return (attributes?[.size] as? NSNumber)?.intValue ?? 0
    }

    /// Simulates a process that was killed after so many bytes.
    private func place(_ count: Int, of havePath: String, for file: URL) throws {
        let part = partFile(of: file)
        try FileManager.default.copyItem(at: URL(fileURLWithPath: havePath), to: part)
        let record: [String: Any] = [
            "version": 1, "url": url, "method": "GET", "headers": [Any](), "validator": "\"v1\"", "offset": count, "total": 262_144,
            "partFile": part.path, "isStable": true, "created": 0,
        ]
        try JSONSerialization.data(withJSONObject: record).write(to: part.appendingPathExtension("json"))
    }

    private func outcome(_ error: (any Error)?, _ status: Int?, _ data: Data?, kept: Int = 0) -> Outcome {
        switch error as? CurlewError {
        case nil where error == nil, .responseValidationFailed:
            return Outcome(ok: true, status: status, bodyBase64: (data ?? Data()).base64EncodedString())
        case .transferFailed(let failure):
            return Outcome(
                ok: false, error: failure.description, kind: failure.kind.hostileName, bytes: max(data?.count ?? 0, kept))
        case .some(let known):
            return Outcome(ok: false, error: "\(known)", kind: known.hostileName, bytes: max(data?.count ?? 0, kept))
        case nil:
            return Outcome(ok: false, error: error.map { "\($0)" }, kind: "other", bytes: kept)
        }
    }
}

extension CurlewError {
    fileprivate var hostileName: String {
        switch self {
        case .redirectFailed(.tooMany, _): "redirects"
        case .redirectFailed(.invalidLocation, _), .redirectFailed(.insecureDowngrade, _),
            .urlRequestValidationFailed(.unsupportedScheme, _):
            "scheme"
        case .invalidURL, .urlRequestValidationFailed(.missingURL, _), .urlRequestValidationFailed(.missingHost, _),
            .urlRequestValidationFailed(.invalidPort, _):
            "url"
        default: "other"
        }
    }
}

extension TransferFailure.Kind {
    fileprivate var hostileName: String {
        switch self {
        case .connectionLost: "lost"
        // The kit has no name for TLS failures: a response that is not TLS is a protocol violation.
        case .protocolViolation, .secureConnection: "protocol"
        case .connectTimeout, .firstByteTimeout, .idleTimeout, .totalTimeout, .queueTimeout: "timeout"
        case .decoding: "decode"
        case .unsupportedScheme: "scheme"
        case .nameResolution: "resolve"
        case .invalidURL: "url"
        default: rawValue
        }
    }
}

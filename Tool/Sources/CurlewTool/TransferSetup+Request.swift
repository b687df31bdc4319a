// SPDX-License-Identifier: Apache-2.0
import Curlew

// The request of a transfer.

extension TransferSetup {
    /// Makes the request, whose body is streamed.
    ///
    /// - Parameters:
    ///   - fields: further header fields.
    ///   - bytesPerSecond: the rate at which the body is sent; `nil` for no limit.
    ///   - other: another session than that of the transfer.
    func request(
        adding fields: [(String, String)] = [], bytesPerSecond: Int64? = nil, through other: SessionManager? = nil
    ) -> DataRequest {
        let manager = other ?? manager
        var headers = headers
        for (name, value) in fields { headers.update(name: name, value: value) }
        let request: DataRequest
        switch plan.body {
        case .file(let path) where bytesPerSecond == nil:
            request = manager.upload(URL(fileURLWithPath: path), to: plan.url, method: plan.method, headers: headers)
        case .bytes(let data) where bytesPerSecond == nil && arguments.curl != nil:
            request = manager.upload(data, to: plan.url, method: plan.method, headers: headers)
        case .parts(let fields):
            request = manager.upload(body.form(fields), to: plan.url, method: plan.method, headers: headers)
        case .none where arguments.cache:
            // Streamed bodies are not stored.
            request = manager.request(plan.url, method: plan.method, headers: headers)
        default:
            // A stream with a Content-Length is sent unchunked.
            if bytesPerSecond != nil || plan.body == .standardInput, let length = body.length {
                headers.update(name: "Content-Length", value: "\(length)")
            }
            request = manager.streamRequest(
                plan.url, method: plan.method, parameters: [:], encoding: body.paced(bytesPerSecond), headers: headers)
        }
        if let (user, password) = credential { request.authenticate(user: user, password: password, persistence: .none) }
        return request
    }

    func metrics(of request: DataRequest) async -> TaskMetrics {
        await request.serializingResponse(using: DataResponseSerializer { _, _, _, _ in .success(()) }).response.metrics
    }

    /// Checks the files that are to be read.
    ///
    /// - Parameter others: those that no option of ours names.
    func checkFiles(_ others: [String] = []) -> Outcome? {
        for path in [arguments.cacert, arguments.cert, arguments.key].compactMap({ $0 }) + others + bodyPaths {
            guard access(path, R_OK) == 0 else { return Outcome(FileFailure(path: path, code: errno)) }
            var isFolder: ObjCBool = false
            if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue {
                return Outcome(FileFailure(path: path, code: EISDIR))
            }
        }
        return nil
    }

    private var bodyPaths: [String] {
        switch plan.body {
        case .file(let path), .stream(let path): [path]
        case .parts(let items): items.compactMap { if case .file(_, let path, _, _) = $0 { path } else { nil } }
        case .none, .bytes, .standardInput: []
        }
    }

    /// Answers no challenges but those of some schemes.
    func answerOnly(_ schemes: Set<String>) {
        manager.delegate.onChallenge { _, challenge in
            schemes.contains(challenge.protectionSpace.authenticationMethod) ? .performDefaultHandling : .rejectProtectionSpace
        }
    }

    /// Sends the credentials to each place that a redirect leads to.
    func trustLocations() {
        let secrets = headers.filter { ["authorization", "cookie"].contains($0.name.lowercased()) }
        manager.delegate.onRedirect { _, _, proposed in
            var request = proposed
            for field in secrets where request.value(forHTTPHeaderField: field.name) == nil {
                request.setValue(field.value, forHTTPHeaderField: field.name)
            }
            return request
        }
    }
}

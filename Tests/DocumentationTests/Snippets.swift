// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Dispatch

// The code of articles, by regions: the lines between `// snippet: NAME` and `// end` are the same in both files, except for
// indentation; `ArticleTests` checks that. `SnippetTests` runs it.

struct User: Codable, Sendable {
    let id: Int
    let name: String
}

// snippet: adapter
struct TokenAdapter: RequestAdapter {
    let token: String

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        var urlRequest = urlRequest
        urlRequest.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        return urlRequest
    }
}

struct PatientRetrier: RequestRetrier {
    func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        let isBusy = request.response?.statusCode == 503
        completion(isBusy && request.retryCount < 3, 0.5 * Double(request.retryCount + 1))
    }
}
// end

enum Snippets {
    static func value(_ manager: SessionManager) async throws -> String {
        // snippet: value
        struct User: Decodable, Sendable {
            let id: Int
            let name: String
        }

        let user = try await manager.request("https://api.example.org/users/7").validate().serializingDecodable(User.self).value
        // end
        return user.name
    }

    static func handler(_ manager: SessionManager, print: @escaping @Sendable (Any...) -> Void) {
        // snippet: handler
        manager.request("https://api.example.org/users/7")
            .validate(statusCode: 200..<300)
            .validate(contentType: ["application/json"])
            .responseDecodable(of: User.self) { response in
                switch response.result {
                case .success(let user): print(user.name, response.response?.statusCode ?? 0)
                case .failure(let error): print(error)
                }
            }
        // end
    }

    static func manager() -> SessionManager {
        // snippet: manager
        var configuration = SessionConfiguration()
        configuration.headers = SessionManager.defaultHTTPHeaders
        configuration.callbackQueue = DispatchQueue(label: "org.example.callbacks")
        let manager = SessionManager(configuration: configuration)
        // end
        return manager
    }

    static func parameters(_ manager: SessionManager) -> [DataRequest] {
        // snippet: parameters
        let url = "https://api.example.org/users"
        // GET /users?name=Ada&roles%5B%5D=admin&roles%5B%5D=author
        let search = manager.request(url, parameters: ["name": "Ada", "roles": ["admin", "author"]])
        // A form in the body: name=Ada
        let form = manager.request(url, method: .post, parameters: ["name": "Ada"])
        // JSON in the body: {"name":"Ada"}
        let json = manager.request(
            url, method: .post, parameters: ["name": "Ada"], encoding: JSONEncoding.default, headers: ["Idempotency-Key": "5b3f"])
        // end
        return [search, form, json]
    }

    static func retry(_ manager: SessionManager) async throws -> String {
        // snippet: retry
        manager.adapter = TokenAdapter(token: "7f3a9c")
        manager.retrier = PatientRetrier()
        let report = try await manager.request("https://api.example.org/report").validate().serializingString().value
        // end
        return report
    }

    static func download(_ manager: SessionManager, to directory: URL) async throws -> URL {
        // snippet: download
        let archive = directory.appendingPathComponent("archive.tar")
        let file = try await manager.download("https://example.org/archive.tar", to: archive, options: .removePreviousFile)
            .downloadProgress(queue: .global()) { print("\(Int($0.fractionCompleted * 100)) %") }
            .validate().serializingURL().value
        // end
        return file
    }

    static func upload(_ manager: SessionManager, _ file: URL) async throws -> Data {
        // snippet: upload
        let answer = try await manager.upload(file, to: "https://example.org/archive.tar", method: .put)
            .uploadProgress(queue: .global()) { print("\($0.completedUnitCount) bytes sent") }
            .validate().serializingData().value
        // end
        return answer
    }

    static func bodyStream(_ manager: SessionManager) async throws -> Int {
        // snippet: body-stream
        var count = 0
        for try await piece in manager.streamRequest("https://example.org/archive.tar").validate().bodyStream() {
            count += piece.count
        }
        // end
        return count
    }

    static func open(_ manager: SessionManager, print: (Any...) -> Void) async throws {
        // snippet: open
        let response = try await manager.open(
            "https://example.org/archive.tar", options: RequestOptions(deadline: .seconds(60)), timeout: .seconds(5))
        guard response.statusCode == 200 else { throw URLError(.badServerResponse) }
        let archive = try await response.body.collect(upTo: 16 << 20)
        print(response.headers["ETag"] ?? "-", response.trailers.count, archive.count)
        // end
    }

    static func stream(_ manager: SessionManager, host: String, port: Int) async throws -> Data {
        // snippet: stream
        let stream = manager.stream(withHostName: host, port: port)
        try await stream.write(Data("Hello\n".utf8))
        stream.closeWrite()
        var answer = Data()
        for try await piece in stream.bytes() { answer += piece }
        try await stream.waitUntilCompleted()
        // end
        return answer
    }

    static func upgrade(_ manager: SessionManager, socket: String) async throws -> Data {
        // snippet: upgrade
        let daemon = RequestOptions(unixSocketPath: socket)
        let connection = try await manager.upgrade(
            "http://localhost/exec/7f3a/start", to: "tcp", method: .post, body: Data(#"{"Tty": true}"#.utf8),
            headers: ["Content-Type": "application/json"], options: daemon)
        try await connection.stream.write(Data("date\n".utf8))
        connection.stream.closeWrite()
        var output = Data()
        for try await piece in connection.stream.bytes() { output += piece }
        // end
        return output
    }

    static func metrics(_ manager: SessionManager) async -> TaskMetrics {
        // snippet: metrics
        let response = await manager.request("https://api.example.org/users/7").serializingData().response
        print(response.timeline)
        for exchange in response.metrics.transactionMetrics {
            print(exchange.remoteAddress ?? "-", exchange.httpVersion?.rawValue ?? "-", exchange.tlsVersion ?? "-")
            print(exchange.reusedConnection, exchange.responseStart ?? .zero, exchange.total, exchange.responseBodyBytes)
        }
        // end
        return response.metrics
    }

    static func errors(_ manager: SessionManager, _ url: String, print: (Any...) -> Void) async throws {
        // snippet: errors
        do {
            let user = try await manager.request(url).validate().serializingDecodable(User.self).value
            print(user)
        } catch CurlewError.responseValidationFailed(reason: .unacceptableStatusCode(let code), _) {
            print("refused with status \(code)")
        } catch CurlewError.transferFailed(let failure) where failure.isTimeout {
            print("no answer in time, while \(failure.phase)")
        } catch let error as CurlewError {
            print(error, error.urlError?.code as Any)
        }
        // end
    }

    static func configuration() -> SessionConfiguration {
        // snippet: configuration
        var configuration = SessionConfiguration()
        configuration.connectTimeout = .seconds(5)  // 30 s by default
        configuration.firstByteTimeout = .seconds(20)  // none: the idle timeout covers it
        configuration.idleTimeout = .seconds(10)  // 60 s
        configuration.totalTimeout = .seconds(300)  // none
        configuration.queueTimeout = .seconds(30)  // none, waiting for one of 64 connections to the host
        configuration.redirects.limit = 5  // 20
        configuration.redirects.sensitiveHeaders = ["X-API-Key"]
        // end
        return configuration
    }

    static func canned() async throws -> User {
        // snippet: canned
        let mock = MockTransport()
        mock.stub(.get, "/users/{id}", respond: .status(503), .json(User(id: 7, name: "Ada")))
        let manager = SessionManager(mock: mock, interceptor: RetryPolicy())
        let user = try await manager.request("https://api.example.org/users/7").validate().serializingDecodable(User.self).value
        // end
        return user
    }

    static func authentication(_ manager: SessionManager) async throws -> String {
        // snippet: authentication
        let me = try await manager.request("https://api.example.org/me").authenticate(user: "ada", password: "secret")
            .validate().serializingString().value
        // end
        return me
    }

    static func retryPolicy(_ manager: SessionManager) async throws -> String {
        // snippet: retry-policy
        let policy = RetryPolicy(retryLimit: 4, exponentialBackoffScale: 0.1)
        let report = try await manager.request("https://api.example.org/report", interceptor: policy)
            .validate().serializingString().value
        // end
        return report
    }

    static func providers(_ manager: SessionManager) async throws -> String {
        // snippet: provider-statuses
        let statuses = RetryPolicy.defaultRetryableHTTPStatusCodes.union(RetryPolicy.providerHTTPStatusCodes)
        let policy = RetryPolicy(retryLimit: 4, maximumDelay: 90, retryableHTTPStatusCodes: statuses)
        let options = RequestOptions(deadline: .seconds(300))
        let answer = try await manager.request("https://api.example.org/answer", interceptor: policy, options: options)
            .validate().serializingString().value
        // end
        return answer
    }

    static func multipart(_ manager: SessionManager, photo: URL, print: @escaping @Sendable (Any...) -> Void) {
        // snippet: multipart
        manager.upload(
            multipartFormData: { form in
                form.append(Data("Ada".utf8), withName: "name")
                form.append(photo, withName: "photo")
            }, to: "https://api.example.org/users"
        ) { encoding in
            switch encoding {
            case .success(let upload, _, _): upload.validate().responseString { print($0.result) }
            case .failure(let error): print(error)
            }
        }
        // end
    }

    static func resume(_ manager: SessionManager, to directory: URL) async throws -> URL {
        // snippet: resume
        let archive = directory.appendingPathComponent("archive.tar")
        let file = try await manager.download("https://example.org/archive.tar", to: archive, options: .resumePreviousDownload)
            .validate().serializingURL().value
        // end
        return file
    }

    static func trust(pinsIn directory: URL) -> SessionManager {
        // snippet: trust
        let keys = ServerTrustPolicy.publicKeys(in: directory)  // .cer, .crt, .der and .pem files
        let policies = ServerTrustPolicyManager(policies: [
            "api.example.org": .pinPublicKeys(publicKeys: keys, validateCertificateChain: true, validateHost: true)
        ])
        let manager = SessionManager(serverTrustPolicyManager: policies)
        // end
        return manager
    }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewEvents
import Foundation

// The code of the articles about bodies, files and security; `ArticleTests` runs it.

extension ArticleSnippets {
    static func resumeData(_ manager: SessionManager, _ url: String, _ file: URL) async throws -> URL {
        // snippet: resume-data
        let first = await manager.download(url, to: file).validate().serializingURL().response
        guard first.error != nil, let resumeData = first.resumeData else { return try first.result.get() }
        return try await manager.download(resumingWith: resumeData, to: file).validate().serializingURL().value
        // end
    }

    static func encodable(_ manager: SessionManager, _ url: String) async throws -> User {
        // snippet: encodable
        let created = try await manager.request(
            url, method: .post, parameters: User(id: 7, name: "Ada"), encoder: JSONParameterEncoder.default
        )
        .validate().serializingDecodable(User.self).value
        // end
        return created
    }

    static func form(_ manager: SessionManager, _ url: String, _ photo: URL) async throws -> String {
        // snippet: form
        let form = MultipartFormData()
        form.append(Data("Ada".utf8), withName: "name")
        form.append(photo, withName: "photo")  // read while it is sent
        let receipt = try await manager.upload(form, to: url).validate().serializingString().value
        // end
        return receipt
    }

    static func sequence(_ manager: SessionManager, _ url: String) async throws -> String {
        // snippet: sequence
        let receipt = try await manager.upload(
            {
                AsyncStream<Data> { continuation in
                    for number in 1...1000 { continuation.yield(Data("\(number)\n".utf8)) }
                    continuation.finish()
                }
            }, to: url, interceptor: RetryPolicy()
        )
        .validate().serializingString().value
        // end
        return receipt
    }

    static func compression(_ manager: SessionManager, _ url: String, _ body: Data) -> UploadRequest {
        // snippet: compression
        let upload = manager.upload(body, to: url, interceptor: Interceptor(adapters: [RequestCompression.gzip]))
        // end
        return upload
    }

    static func fetcher() -> SessionManager {
        // snippet: fetcher
        var configuration = SessionConfiguration()
        configuration.addresses = .publicOnly  // checked for each connection, after the name was resolved
        configuration.proxy = .none  // a proxy connects by itself
        configuration.redirects.limit = 3
        configuration.maximumBodySize = 10 << 20
        configuration.totalTimeout = .seconds(30)
        let fetcher = SessionManager(configuration: configuration)
        // end
        return fetcher
    }

    static func exceptions(_ configuration: inout SessionConfiguration) {
        // snippet: exceptions
        let services = ["10.1.0.0/16", "fd12::/16"].compactMap { AddressRange($0) }
        configuration.addresses = .publicOnly(except: services)
        // end
    }

    static func refused(_ fetcher: SessionManager, _ url: String, print: (String) -> Void) async throws {
        // snippet: refused
        do {
            let page = try await fetcher.request(url).validate().serializingData().value
            print("\(page.count) bytes")
        } catch CurlewError.transferFailed(let failure) where failure.kind == .addressNotAllowed {
            print("refused: \(failure.message)")
        }
        // end
    }

    static func authority(_ pem: URL) throws -> SessionManager {
        // snippet: authority
        var configuration = SessionConfiguration()
        configuration.proxy = .url("http://proxy.example.org:3128", except: ["localhost", ".internal.example.org"])
        configuration.tls.certificateAuthorities = try Data(contentsOf: pem)  // these alone, in place of the system's
        let manager = SessionManager(configuration: configuration)
        // end
        return manager
    }

    static func redaction(_ configuration: inout SessionConfiguration) {
        // snippet: redaction
        configuration.redaction = Redaction(headers: ["X-Session"], queryItems: ["code"])
        // end
    }

    static func executor(_ manager: SessionManager, _ urls: [String]) async throws -> Int {
        // snippet: executor
        let count = try await withTaskExecutorPreference(manager.taskExecutor) {
            var count = 0
            for url in urls { count += try await manager.request(url).validate().serializingData().value.count }
            return count
        }
        // end
        return count
    }

    static func lines(_ manager: SessionManager, _ url: String, print: (String) -> Void) async throws {
        // snippet: lines
        for try await user in manager.streamRequest(url).validate().bodyStream().jsonLines(of: User.self) {
            print(user.name)
        }
        // end
    }

    static func asyncHTTPClient(_ manager: SessionManager, _ url: String) async throws -> (Int, Data) {
        // snippet: async-http-client
        // let response = try await HTTPClient.shared.execute(HTTPClientRequest(url: url), timeout: .seconds(30))
        // let body = try await response.body.collect(upTo: 1 << 20)
        let options = RequestOptions(deadline: .seconds(30), maximumBodySize: 1 << 20)
        let response = await manager.request(url, options: options).serializingData().response
        let (status, body) = (response.response?.statusCode ?? 0, try response.result.get())
        // end
        return (status, body)
    }
}

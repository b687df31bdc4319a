// SPDX-License-Identifier: Apache-2.0
import BenchSupport
import Curlew
import CurlewURLSession

/// Curlew's own `URLSession`, written as in the program of Foundation's, and Curlew's `await` with the same types.
struct Sessions: Sendable {
    /// What `URLSession` sends too.
    static let headers = HTTPHeaders([HTTPHeader(name: "Accept", value: "*/*")] + SessionManager.defaultHTTPHeaders)

    private let session: URLSession

    init(_ options: Options) {
        let configuration = URLSessionConfiguration.ephemeral
        // 6 by default: more in flight would measure the queue.
        configuration.httpMaximumConnectionsPerHost = (options.beside?.waiting ?? 0) + options.inFlight
        configuration.urlCache = nil
        session = URLSession(configuration: configuration)
    }

    static func request(_ url: String) throws -> URLRequest {
        guard let url = URL(string: url) else { throw BenchFailure("no URL") }
        return URLRequest(url: url)
    }

    static func body(of request: DataRequest) async throws -> Int {
        let body = try await request.serializingData().value
        try check(request.response)
        return body.count
    }

    func data(_ url: String) async throws -> Int {
        let (body, response) = try await session.data(for: Self.request(url))
        try Self.check(response)
        return body.count
    }

    func bytes(_ url: String) async throws -> Int {
        let (bytes, response) = try await session.bytes(for: Self.request(url))
        try Self.check(response)
        var count = 0
        for try await _ in bytes { count += 1 }
        return count
    }

    private static func check(_ response: URLResponse?) throws {
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard (200..<300).contains(status) else { throw BenchFailure("status \(status)") }
    }
}

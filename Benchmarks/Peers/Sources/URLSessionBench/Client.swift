// SPDX-License-Identifier: Apache-2.0
import BenchSupport
import Foundation
import FoundationNetworking

/// Foundation's own client, written as its users write it.
///
/// It cannot be given a certificate to trust on Linux: `scripts/bench` puts it among the system's for this program alone.
struct Client: BenchClient {
    private let options: Options
    private let session: URLSession

    init(_ options: Options) {
        self.options = options
        let configuration = URLSessionConfiguration.ephemeral
        // 6 by default: more in flight would measure the queue.
        configuration.httpMaximumConnectionsPerHost = (options.beside?.waiting ?? 0) + options.inFlight
        configuration.urlCache = nil
        session = URLSession(configuration: configuration)
    }

    func get(_ url: String) async throws -> Int { try await body(url).count }

    func decode(_ url: String) async throws -> Int {
        let body = try await body(url)
        if options.style == .object { return try JSONDecoder().decode(Profile.self, from: body).id }
        return try JSONDecoder().decode([Item].self, from: body).count
    }

    private func body(_ url: String) async throws -> Data {
        guard let url = URL(string: url) else { throw BenchFailure("no URL") }
        var request = URLRequest(url: url)
        if options.isCold { request.setValue("close", forHTTPHeaderField: "Connection") }
        let (body, response) = try await session.data(for: request)
        try check(response)
        return body
    }

    func download(_ url: String, to path: String) async throws {
        guard let url = URL(string: url) else { throw BenchFailure("no URL") }
        let (file, response) = try await session.download(from: url)
        try check(response)
        try FileManager.default.moveItem(at: file, to: URL(fileURLWithPath: path))
    }

    func upload(_ path: String, to url: String) async throws {
        guard let url = URL(string: url) else { throw BenchFailure("no URL") }
        var request = URLRequest(url: url)
        request.httpMethod = "PUT"
        let (_, response) = try await session.upload(for: request, fromFile: URL(fileURLWithPath: path))
        try check(response)
    }

    private func check(_ response: URLResponse) throws {
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard (200..<300).contains(status) else { throw BenchFailure("status \(status)") }
    }
}

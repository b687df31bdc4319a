// SPDX-License-Identifier: Apache-2.0
import Curlew
import Foundation

/// Everything of Curlew that the benchmarks call, written as its users write it.
struct Client: Sendable {
    private let url: String
    private let headers: HTTPHeaders
    private let manager: SessionManager
    private let handlerQueue = DispatchQueue(label: "CurlewBench.handlers")

    init(_ options: Options) throws {
        url = options.url
        // The server closes the connection after each answer, whatever the client would do.
        headers = options.isCold ? ["Connection": "close"] : [:]
        var configuration = SessionConfiguration()
        // 64 by default: more in flight would measure the queue.
        configuration.maximumConnectionsPerHost = nil
        configuration.proxy = .none
        configuration.httpVersion = options.usesHTTP2 ? .automatic : .http1
        configuration.tls.certificateAuthorityFile = options.caFile
        manager = SessionManager(configuration: configuration)
        if case .closure = options.command { manager.adapter = AuthorizingAdapter() }
    }

    /// One small request with `await`; the bytes of its body.
    func get() async throws -> Int {
        try await manager.request(url, headers: headers).serializingData().value.count
    }

    /// One small request as Alamofire's users write it: adapter, validation, handler on a queue of theirs.
    func get(handler: @escaping @Sendable (Result<Int, any Error>) -> Void) {
        manager.request(url, headers: headers).validate().responseData(queue: handlerQueue) { response in
            handler(response.result.map(\.count))
        }
    }

    func download(to file: URL) async throws -> Int {
        let saved = try await manager.download(url, to: file, options: [.removePreviousFile]).serializingURL().value
        return try saved.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
    }

    func upload(_ file: URL) async throws -> Int {
        _ = try await manager.upload(file, to: url, method: .put).serializingData().value
        return try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
    }
}

/// The least that an adapter does: one header.
private struct AuthorizingAdapter: RequestAdapter {
    func adapt(_ request: URLRequest) throws -> URLRequest {
        var request = request
        request.setValue("Bearer benchmark", forHTTPHeaderField: "Authorization")
        return request
    }
}

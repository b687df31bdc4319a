// SPDX-License-Identifier: Apache-2.0
import BenchSupport
import Curlew
import CurlewJSON
import Foundation

/// Everything of Curlew that the benchmarks call, written as its users write it.
struct Client: BenchClient {
    private let options: Options
    private let headers: HTTPHeaders
    private let manager: SessionManager
    /// What a service gives each request.
    private let requestOptions: RequestOptions?
    private let handlerQueue = DispatchQueue(label: "CurlewBench.handlers")

    init(_ options: Options) throws {
        self.options = options
        // The server closes the connection after each answer, whatever the client would do.
        headers = options.isCold ? ["Connection": "close"] : [:]
        var configuration = SessionConfiguration()
        // 64 by default: more in flight would measure the queue.
        configuration.maximumConnectionsPerHost = nil
        // The default depends on libcurl's version.
        configuration.multiplexes = options.multiplexes
        configuration.proxy = .none
        configuration.httpVersion = options.usesHTTP2 ? .automatic : .http1
        configuration.tls.certificateAuthorityFile = options.caFile
        manager = SessionManager(configuration: configuration)
        requestOptions =
            switch options.style {
            case .deadline: RequestOptions(deadline: .seconds(60))
            case .options: RequestOptions(idleTimeout: .seconds(20), totalTimeout: .seconds(50), name: "GET /{file}")
            default: nil
            }
        switch options.style {
        case .adapter, .handlers: manager.adapter = AuthorizingAdapter()
        case .headers: manager.adapter = AuthorizingHeaders()
        case .awaited: manager.adapter = AwaitedHeaders()
        case .data, .options, .deadline, .object, .list: break
        }
    }

    var executor: (any TaskExecutor)? { options.usesExecutor ? manager.taskExecutor : nil }

    func get(_ url: String) async throws -> Int {
        switch options.style {
        case .adapter, .headers: try await manager.request(url, headers: headers).validate().serializingData().value.count
        case .options, .deadline:
            try await manager.request(url, headers: headers, options: requestOptions).serializingData().value.count
        default: try await manager.request(url, headers: headers).serializingData().value.count
        }
    }

    func get(_ url: String, handler: @escaping @Sendable (Result<Int, any Error>) -> Void) {
        manager.request(url, headers: headers).validate().responseData(queue: handlerQueue) { response in
            handler(response.result.map(\.count))
        }
    }

    func decode(_ url: String) async throws -> Int {
        let request = manager.request(url, headers: headers).validate()
        if options.style == .object { return try await request.serializingDecodable(Profile.self, decoder: decoder).value.id }
        return try await request.serializingDecodable([Item].self, decoder: decoder).value.count
    }

    func decode(_ bytes: [UInt8]) throws -> Int {
        // Each time data of its own, as a body is.
        let data = Data(bytes)
        if options.style == .object { return try decoder.decode(Profile.self, from: data).id }
        return try decoder.decode([Item].self, from: data).count
    }

    /// A new one each time, as the default of `serializingDecodable` is.
    private var decoder: any DataDecoder { options.usesFastDecoder ? FastJSONDecoder() : JSONDecoder() }

    func download(_ url: String, to path: String) async throws {
        _ = try await manager.download(url, to: URL(fileURLWithPath: path), options: [.removePreviousFile]).serializingURL().value
    }

    func upload(_ path: String, to url: String) async throws {
        _ = try await manager.upload(URL(fileURLWithPath: path), to: url, method: .put).serializingData().value
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

/// The same, for a header alone.
private struct AuthorizingHeaders: HeaderAdapter {
    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) {
        headers["Authorization"] = "Bearer benchmark"
    }
}

/// The same, awaited.
private struct AwaitedHeaders: AsyncHeaderAdapter {
    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String, for manager: SessionManager) async throws {
        headers["Authorization"] = "Bearer benchmark"
    }
}

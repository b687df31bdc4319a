// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport

/// Requests of every kind to two servers with the standard routes, by number.
struct RequestKinds: Sendable {
    /// How a request is made.
    enum Method: CaseIterable, Sendable {
        case data
        case upload
        case file
        case download

        /// The text of the response.
        func text(_ manager: SessionManager, _ url: String, _ file: URL) async -> String? {
            switch self {
            case .data: return await manager.request(url).serializingString().response.value
            case .upload: return await manager.upload(Data(count: 5_000), to: url, method: .put).serializingString().response.value
            case .file:
                guard (try? Data(count: 5_000).write(to: file)) != nil else { return nil }
                return await manager.upload(file, to: url, method: .put).serializingString().response.value
            case .download:
                let response = await manager.download(url, to: file, options: .removePreviousFile).serializingURL().response
                return response.value.flatMap { try? String(contentsOf: $0, encoding: .utf8) }
            }
        }
    }

    private let manager: SessionManager
    private let first: LoopbackServer
    private let second: LoopbackServer
    private let directory: TemporaryDirectory

    init(_ manager: SessionManager, _ first: LoopbackServer, _ second: LoopbackServer, _ directory: TemporaryDirectory) {
        (self.manager, self.first, self.second, self.directory) = (manager, first, second, directory)
    }

    /// Runs a request, which is cancelled after a time in microseconds. Returns what is wrong with its end.
    func run(_ index: Int, cancelledAfter delay: Int?) async -> String? {
        let request: Request
        let expected: String
        switch index % 9 {
        case 0: (request, expected) = (manager.request(first.url("/bytes/3000")), "3000 bytes")
        case 1: (request, expected) = (manager.request(first.url("/redirect-to?url=\(second.url("/bytes/10"))")), "10 bytes")
        case 2: (request, expected) = (manager.request(first.url("/flaky?fail=2&key=\(index)"), interceptor: retries).validate(), "9 bytes")
        case 3:
            let url = second.url("/redirect-to?status=307&url=\(first.url("/body"))")
            (request, expected) = (manager.upload(Data(count: 2_000), to: url, method: .put), "2000 bytes")
        case 4:
            let file = directory.file("download-\(index)")
            (request, expected) = (manager.download(first.url("/bytes/20000"), to: file), "20000 bytes")
        case 5: (request, expected) = (manager.streamRequest(second.url("/chunked/9000")), "9000 bytes")
        case 6: (request, expected) = (manager.upload(InputStream(data: Data(count: 5_000)), to: first.url("/body")), "5000 bytes")
        case 7: (request, expected) = (manager.request(second.url("/cut-body"), interceptor: retries), "connectionLost")
        default: (request, expected) = (manager.request(first.url("/reset"), interceptor: retries), "connectionLost")
        }
        let cancelling = delay.map { delay in
            Task {
                try? await Task.sleep(for: .microseconds(delay))
                request.cancel()
            }
        }
        let end = await end(of: request)
        await cancelling?.value
        if end == expected || delay != nil && end == "cancelled" { return nil }
        // An attempt that has failed by then is not retried.
        if delay != nil, index % 9 == 2, end.contains("503") { return nil }
        return "\(index): \(end)"
    }

    private var retries: ThreeRetries { ThreeRetries() }

    private func end(of request: Request) async -> String {
        let error: (any Error)?
        let count: Int?
        switch request {
        case let request as DownloadRequest:
            let response = await request.serializingURL().response
            (error, count) = (response.error, response.value.flatMap { try? Data(contentsOf: $0).count })
        case let request as DataRequest:
            let response = await request.serializingData().response
            (error, count) = (response.error, response.value?.count)
        default: return "unknown kind"
        }
        guard let error else { return "\(count ?? -1) bytes" }
        if error.isCancelled { return "cancelled" }
        return error.transferFailure.map { "\($0.kind)" } ?? "\(error)"
    }

    /// Retries three times, each time after a millisecond.
    private struct ThreeRetries: RequestInterceptor {
        func adapt(_ urlRequest: URLRequest) throws -> URLRequest { urlRequest }

        func should(_ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion)
        {
            completion(request.retryCount < 3, 0.001)
        }
    }
}

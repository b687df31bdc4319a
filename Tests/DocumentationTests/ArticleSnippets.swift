// SPDX-License-Identifier: Apache-2.0
import Curlew
import Foundation

// The code of the articles about interceptors, clients and monitors, in the form of Snippets.swift; `ArticleTests` runs it.

// snippet: async-adapter
struct KeyForPathAdapter: AsyncRequestAdapter {
    let key: @Sendable (_ path: String) async throws -> String

    func adapt(_ urlRequest: URLRequest, for _: SessionManager) async throws -> URLRequest {
        var urlRequest = urlRequest
        urlRequest.setValue(try await key(urlRequest.url?.path ?? ""), forHTTPHeaderField: "X-API-Key")
        return urlRequest
    }
}
// end

// snippet: header-adapter
struct KeyAdapter: HeaderAdapter {
    let key: String

    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) {
        headers["X-API-Key"] = key
    }
}
// end

// snippet: signer
struct RequestSigner: ExchangeSigner {
    let identity: String
    let code: @Sendable (_ text: String) -> String
    let digestsBody = true

    func sign(_ exchange: SignableExchange) throws -> HTTPHeaders {
        let time = "\(Int(exchange.date.timeIntervalSince1970))"
        let digest = Data(exchange.bodyDigest ?? []).base64EncodedString()
        let text = "\(exchange.method.rawValue) \(exchange.url) \(time) \(digest)"
        return ["X-Key": identity, "X-Time": time, "X-Signature": code(text)]
    }
}
// end

// snippet: monitor
struct FailureLog: EventMonitor {
    let write: @Sendable (String) -> Void

    var monitoredEvents: MonitoredEvents { [.failures, .retries] }

    func request(_ request: Request, didFailWith error: any Error, isHandled: Bool) {
        write("\(error)")
    }

    func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error) {
        write("again in \(delay) s: \(error)")
    }
}
// end

// snippet: users-client
struct UsersClient {
    let api: String
    let manager: SessionManager

    func user(_ id: Int) async throws -> User {
        let options = RequestOptions(deadline: .seconds(2), name: "GET /users/{id}")
        return try await manager.request("\(api)/users/\(id)", options: options)
            .validate().serializingDecodable(User.self).value
    }
}
// end

// snippet: transport
/// Counts the bytes of all responses, decoded.
final class MeteredTransport: Transport {
    private let base: any Transport
    let meter = Meter()

    init(_ base: any Transport) { self.base = base }

    /// Its responses are the other's, also in a cache that sessions share.
    var cachePartition: String? { base.cachePartition }

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        base.makeTransfer(request, id: id, observer: MeteredObserver(observer, meter))
    }

    func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        base.makeStream(request, id: id, observer: observer)
    }

    func shutDown() { base.shutDown() }

    func waitUntilShutDown() async { await base.waitUntilShutDown() }
}

/// Hears a transfer first.
final class MeteredObserver: TransferObserver {
    private let observer: any TransferObserver
    private let meter: Meter

    init(_ observer: any TransferObserver, _ meter: Meter) {
        self.observer = observer
        self.meter = meter
    }

    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) { observer.transfer(id, didReceiveInterim: head) }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction { observer.transfer(id, didReceive: head) }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        meter.add(bytes.count)
        return observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) { observer.transfer(id, didSend: count) }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) { observer.transfer(id, didComplete: completion) }
}
// end

enum ArticleSnippets {
    static func front(_ manager: SessionManager) async throws -> User {
        // snippet: front
        let user = try await manager.request("https://api.example.org/users/7")
            .validate().serializingDecodable(User.self).value
        // end
        return user
    }

    static func interceptors(key: String) -> SessionManager {
        // snippet: interceptors
        let interceptor = Interceptor(adapters: [KeyAdapter(key: key)], retriers: [RetryPolicy(retryLimit: 3)])
        let manager = SessionManager(interceptor: interceptor)
        // end
        return manager
    }

    static func signed(_ manager: SessionManager, _ code: @escaping @Sendable (String) -> String) async throws -> String {
        // snippet: signed
        let options = RequestOptions(signer: RequestSigner(identity: "key-7", code: code))
        let order = try await manager.request("https://api.example.org/orders/7", options: options).serializingString().value
        // end
        return order
    }

    static func asyncClosures(_ manager: SessionManager, _ url: String, _ token: @escaping @Sendable () async throws -> String)
        -> DataRequest
    {
        // snippet: async-closures
        let adapter = Adapter { request in
            var request = request
            request.setValue("Bearer \(try await token())", forHTTPHeaderField: "Authorization")
            return request
        }
        let retrier = Retrier { _, request, _ in
            request.response?.statusCode == 503 && request.retryCount < 3 ? .retry(after: .milliseconds(500)) : .doNotRetry(nil)
        }
        let request = manager.request(url, interceptor: Interceptor(adapter: adapter, retrier: retrier))
        // end
        return request
    }

    static func server() -> UsersClient {
        // snippet: server
        var configuration = SessionConfiguration()
        configuration.connectTimeout = .seconds(2)
        configuration.headers = [.userAgent("App/1.0")]  // there is none by default
        configuration.maximumConnectionsPerHost = 50  // requests beyond it wait, by priority and in order
        let manager = SessionManager(configuration: configuration, interceptor: RetryPolicy())
        let client = UsersClient(api: "https://api.example.org", manager: manager)
        // end
        return client
    }

    static func shutdown(_ manager: SessionManager) async {
        // snippet: shutdown
        await manager.shutdown(gracePeriod: .seconds(20))
        // end
    }

    static func pages(_ url: String, _ manager: SessionManager) async throws -> [User] {
        // snippet: pages
        var users: [User] = []
        var next: String? = url
        while let page = next {
            let response = await manager.request(page).validate().serializingDecodable([User].self).response
            users += try response.result.get()
            next = response.response?.value(forHTTPHeaderField: "X-Next-Page")
        }
        // end
        return users
    }

    static func table(_ users: [User], print: (String) -> Void) {
        // snippet: table
        for user in users {
            let id = String(user.id)
            print(String(repeating: " ", count: max(0, 6 - id.count)) + id + "  " + user.name)
        }
        // end
    }

    static func tool(_ manager: SessionManager, _ url: String, _ destination: URL, print: @escaping @Sendable (String) -> Void)
        async -> Int32
    {
        // snippet: tool
        var status: Int32 = 0
        do {
            let file = try await manager.download(url, to: destination, options: [.resumePreviousDownload, .removePreviousFile])
                .downloadProgress(queue: .global()) { print("\(Int($0.fractionCompleted * 100)) %") }
                .validate().serializingURL().value
            print(file.path)
        } catch {
            print("error: \(error)")  // method, URL, what failed, and why
            status = 1
        }
        // end
        return status
    }

    static func monitor(write: @escaping @Sendable (String) -> Void) -> SessionConfiguration {
        // snippet: monitors
        var configuration = SessionConfiguration()
        configuration.eventMonitors.append(FailureLog { line in write(line) })
        // end
        return configuration
    }

    static func deadline(_ client: UsersClient) async throws -> [User] {
        // snippet: deadline
        let users = try await withDeadline(.seconds(5)) {
            async let ada = client.user(7)
            async let grace = client.user(8)
            return try await [ada, grace]
        }
        // end
        return users
    }
}

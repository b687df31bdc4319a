// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

/// Programs written for Apple's `URLSession` compile with `CurlewURLSession`, in both language modes.
@Suite(.timeLimit(.minutes(5)), .enabled(if: SwiftCompiler.isInstalled)) struct URLSessionSourceTests {
    private static let modes = [5, 6]

    private static func errors(_ program: String, _ mode: Int, _ flags: [String] = []) async throws -> [String] {
        try await SwiftCompiler.errors(in: "import Foundation\nimport CurlewURLSession\n" + program, version: mode, flags: flags)
    }

    // U1.5
    @Test(arguments: modes) func `what Apple's SDK lets cross between tasks may here`(mode: Int) async throws {
        let program = """
            func sendable<T: Sendable>(_ type: T.Type) {}
            func check() {
                sendable(URLSession.self)
                sendable(URLSessionConfiguration.self)
                sendable(URLSessionTask.self)
                sendable(URLSessionDataTask.self)
                sendable(URLSessionUploadTask.self)
                sendable(URLSessionDownloadTask.self)
                sendable(URLSessionStreamTask.self)
                sendable(URLSessionWebSocketTask.self)
                sendable(URLSessionTaskMetrics.self)
                sendable((any URLSessionDelegate).self)
                sendable((any URLSessionTaskDelegate).self)
                sendable((any URLSessionDataDelegate).self)
                sendable((any URLSessionDownloadDelegate).self)
                sendable((any URLSessionStreamDelegate).self)
                sendable((any URLSessionWebSocketDelegate).self)
                sendable(URLSession.ResponseDisposition.self)
                sendable(URLSession.AuthChallengeDisposition.self)
                sendable(URLSession.DelayedRequestDisposition.self)
                sendable(URLSessionTask.State.self)
                sendable(URLSessionConfiguration.MultipathServiceType.self)
                sendable(URLSessionWebSocketTask.CloseCode.self)
            }
            struct Client: Sendable {
                let session: URLSession
                let configuration: URLSessionConfiguration
            }
            @MainActor final class Model {
                let session = URLSession(configuration: .ephemeral)
                var task: URLSessionDataTask?
                func load(_ url: URL) async throws -> Data {
                    task = session.dataTask(with: url)
                    return try await session.data(from: url).0
                }
            }
            func capture(_ session: URLSession, _ task: URLSessionTask, _ configuration: URLSessionConfiguration) -> @Sendable () -> Void {
                {
                    task.cancel()
                    _ = (session.delegateQueue, configuration.identifier)
                }
            }
            """
        #expect(try await Self.errors(program, mode) == [])
    }

    // U1.5
    @Test(arguments: modes) func `delegates with handlers compile with and without attributes`(mode: Int) async throws {
        for attributes in ["@escaping @Sendable", "@escaping", "@Sendable @escaping"] {
            let program = """
                final class Delegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
                    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: Error?) {}
                    func urlSession(_ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
                                    completionHandler: \(attributes) (URLSession.AuthChallengeDisposition, URLCredential?) -> Void) {
                        completionHandler(.performDefaultHandling, nil)
                    }
                    func urlSession(_ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
                                    completionHandler: \(attributes) (URLSession.AuthChallengeDisposition, URLCredential?) -> Void) {
                        completionHandler(.useCredential, URLCredential(user: "a", password: "b", persistence: .forSession))
                    }
                    func urlSession(_ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                                    newRequest request: URLRequest, completionHandler: \(attributes) (URLRequest?) -> Void) {
                        completionHandler(request)
                    }
                    func urlSession(_ session: URLSession, task: URLSessionTask,
                                    needNewBodyStream completionHandler: \(attributes) (InputStream?) -> Void) {
                        completionHandler(nil)
                    }
                    func urlSession(_ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
                                    completionHandler: \(attributes) (URLSession.DelayedRequestDisposition, URLRequest?) -> Void) {
                        completionHandler(.continueLoading, nil)
                    }
                    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {}
                    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {}
                    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
                                    completionHandler: \(attributes) (URLSession.ResponseDisposition) -> Void) {
                        completionHandler(.allow)
                    }
                    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
                                    completionHandler: \(attributes) (CachedURLResponse?) -> Void) {
                        completionHandler(proposedResponse)
                    }
                    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
                    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}
                    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
                                    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64) {}
                }
                """
            #expect(try await Self.errors(program, mode) == [], "\(attributes)")
        }
    }

    // U1.5
    @Test(arguments: modes) func `delegates with async methods compile`(mode: Int) async throws {
        let program = """
            final class Delegate: NSObject, URLSessionDataDelegate, URLSessionWebSocketDelegate, URLSessionStreamDelegate {
                func urlSession(_ session: URLSession, didReceive challenge: URLAuthenticationChallenge) async
                    -> (URLSession.AuthChallengeDisposition, URLCredential?) { (.performDefaultHandling, nil) }
                func urlSession(_ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge) async
                    -> (URLSession.AuthChallengeDisposition, URLCredential?) { (.performDefaultHandling, nil) }
                func urlSession(_ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                                newRequest request: URLRequest) async -> URLRequest? { request }
                func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? { nil }
                func urlSession(_ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest) async
                    -> (URLSession.DelayedRequestDisposition, URLRequest?) { (.continueLoading, nil) }
                func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse) async
                    -> URLSession.ResponseDisposition { .allow }
                func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse) async
                    -> CachedURLResponse? { nil }
                func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?) {}
                func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {}
            }
            """
        #expect(try await Self.errors(program, mode) == [])
    }

    // U1.5
    @Test(arguments: modes) func `delegates of the main actor compile`(mode: Int) async throws {
        let program = """
            @MainActor final class Loader: NSObject, URLSessionDataDelegate {
                private var received = Data()
                private lazy var session = URLSession(configuration: .default, delegate: self, delegateQueue: .main)
                func start(_ url: URL) { session.dataTask(with: url).resume() }
                nonisolated func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
                    Task { @MainActor in self.received.append(data) }
                }
                nonisolated func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                    MainActor.assumeIsolated { received.removeAll() }
                }
            }
            @MainActor final class Watcher: NSObject, @preconcurrency URLSessionTaskDelegate {
                var count = 0
                func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) { count += 1 }
            }
            """
        #expect(try await Self.errors(program, mode) == [])
    }

    // U1.5
    @Test(arguments: modes, [[], ["-enable-upcoming-feature", "MemberImportVisibility"]])
    func `a delegate answers a challenge of server trust`(
        mode: Int, flags: [String]
    ) async throws {
        let program = """
            final class Pinning: NSObject, URLSessionDelegate {
                func urlSession(_ session: URLSession, didReceive challenge: URLAuthenticationChallenge) async
                    -> (URLSession.AuthChallengeDisposition, URLCredential?) {
                    guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust,
                        let trust = challenge.protectionSpace.serverTrust
                    else { return (.performDefaultHandling, nil) }
                    return (.useCredential, URLCredential(trust: trust))
                }
            }
            """
        #expect(try await Self.errors(program, mode, flags) == [])
    }

    /// The classes of Apple's documentation and of most programs: neither final nor without variables.
    private static let mutable = """
        class Downloader: NSObject, URLSessionDownloadDelegate {
            var progress = 0.0
            lazy var session: URLSession = URLSession(configuration: .default, delegate: self, delegateQueue: nil)
            func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
                progress = 1
            }
        }
        """

    // U1.5
    @Test func `delegates with variables compile in Swift 5 mode, without a warning`() async throws {
        #expect(try await Self.errors(Self.mutable, 5, ["-warnings-as-errors"]) == [])
        let checked = Self.mutable.replacingOccurrences(
            of: "URLSessionDownloadDelegate", with: "URLSessionDownloadDelegate, @unchecked Sendable")
        #expect(try await Self.errors(checked, 6, ["-warnings-as-errors"]) == [])
        // As with Apple's SDK, where the protocols are Sendable as well.
        #expect(try await Self.errors(Self.mutable, 6) == ["3: non-final class 'Downloader' cannot conform to the 'Sendable' protocol"])
    }

    // U1.5
    @Test(arguments: modes) func `classes that are open in Apple's SDK can be replaced by subclasses`(mode: Int) async throws {
        let program = """
            class MockTask: URLSessionDataTask, @unchecked Sendable {
                private let closure: () -> Void
                init(closure: @escaping () -> Void) { self.closure = closure }
                override func resume() { closure() }
                override func cancel() {}
                override var state: URLSessionTask.State { .running }
                override var response: URLResponse? { nil }
                override var originalRequest: URLRequest? { nil }
            }
            class MockDownload: URLSessionDownloadTask, @unchecked Sendable {
                override init() { super.init() }
                override func suspend() {}
            }
            class MockSession: URLSession, @unchecked Sendable {
                var data: Data?
                override init() { super.init() }
                override func dataTask(
                    with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, Error?) -> Void
                ) -> URLSessionDataTask {
                    let data = self.data
                    return MockTask { completionHandler(data, nil, nil) }
                }
                override func dataTask(
                    with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, Error?) -> Void
                ) -> URLSessionDataTask { MockTask {} }
                override func dataTask(with request: URLRequest) -> URLSessionDataTask { super.dataTask(with: request) }
                override func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
                    super.uploadTask(with: request, from: bodyData)
                }
                override func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { MockDownload() }
                override func invalidateAndCancel() {}
                override class var shared: URLSession { MockSession() }
            }
            class Empty: URLSession, @unchecked Sendable {}
            class Settings: URLSessionConfiguration, @unchecked Sendable {
                override var httpMaximumConnectionsPerHost: Int { get { 1 } set {} }
            }
            func use() -> [URLSession] { [MockSession(), Empty(), URLSession(configuration: Settings())] }
            """
        #expect(try await Self.errors(program, mode) == [])
    }

    // U1.5: overrides of Swift 5's programs have neither attribute.
    @Test func `an override may leave out the attributes of a handler in Swift 5 mode`() async throws {
        let program = """
            class MockSession: URLSession {
                override func dataTask(with url: URL, completionHandler: @escaping (Data?, URLResponse?, Error?) -> Void) -> URLSessionDataTask {
                    super.dataTask(with: url)
                }
            }
            func load(_ session: URLSession, _ url: URL, done: @escaping (Data?) -> Void) {
                session.dataTask(with: url) { data, _, _ in done(data) }.resume()
                URLSession.shared.getAllTasks { tasks in done(nil) }
            }
            """
        #expect(try await Self.errors(program, 5) == [])
    }
}

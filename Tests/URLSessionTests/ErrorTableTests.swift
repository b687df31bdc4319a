// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewURLSession

@Suite(.timeLimit(.minutes(1))) struct ErrorTableTests {
    /// Why a task of a plain server fails.
    struct Cause: Sendable, CustomTestStringConvertible {
        let name: String
        let code: URLError.Code
        /// The path on the server, or a whole URL.
        let url: String
        var change: @Sendable (URLSessionConfiguration) -> Void = { _ in }
        var request: @Sendable (inout URLRequest) -> Void = { _ in }

        var testDescription: String { name }
    }

    static let causes: [Cause] = [
        Cause(name: "an unknown name", code: .cannotFindHost, url: "http://curlew.invalid/"),
        Cause(name: "a head that is cut off", code: .networkConnectionLost, url: "/cut-head"),
        Cause(name: "a body that is cut off", code: .networkConnectionLost, url: "/cut-body"),
        Cause(name: "a reset", code: .networkConnectionLost, url: "/reset"),
        Cause(name: "a reset in a body", code: .networkConnectionLost, url: "/reset?send=1000"),
        Cause(name: "no answer", code: .timedOut, url: "/silent", request: { $0.timeoutInterval = 0.2 }),
        Cause(name: "a pause", code: .timedOut, url: "/head-only", change: { $0.timeoutIntervalForRequest = 0.2 }),
        Cause(
            name: "a body that takes too long", code: .timedOut, url: "/drip?n=100&ms=50",
            change: { $0.timeoutIntervalForResource = 0.3 }),
        Cause(name: "redirects without end", code: .httpTooManyRedirects, url: "/redirect/40"),
        Cause(name: "a redirect to nowhere", code: .redirectToNonExistentLocation, url: "/redirect-to?url=ftp://x/"),
        Cause(name: "a body with a broken coding", code: .cannotDecodeRawData, url: "/gzip-truncated"),
        Cause(
            name: "a head that is too long", code: .dataLengthExceedsMaximum, url: "/json",
            change: { $0.curlew.options.maximumHeadSize = 20 }),
        Cause(name: "a scheme of another protocol", code: .unsupportedURL, url: "ftp://127.0.0.1/x"),
        Cause(name: "an unknown scheme", code: .unsupportedURL, url: "curlew-test://127.0.0.1/x"),
        Cause(name: "no scheme", code: .unsupportedURL, url: "127.0.0.1"),
        Cause(name: "no host", code: .badURL, url: "http:///x"),
        Cause(
            name: "a response that only a cache may have", code: .resourceUnavailable, url: "/json",
            request: { $0.cachePolicy = .returnCacheDataDontLoad }),
        Cause(name: "a file that is missing", code: .fileDoesNotExist, url: "file:///curlew/none"),
        Cause(name: "a file that is a directory", code: .fileIsDirectory, url: "file:///"),
    ]

    // U3.2
    @Test(arguments: causes) func `a cause has Apple's code, the URL and Curlew's error`(_ cause: Cause) async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let url = try #require(URL(string: cause.url.hasPrefix("/") ? server.url(cause.url) : cause.url))
        var request = URLRequest(url: url)
        cause.request(&request)
        let configuration = Self.configuration()
        cause.change(configuration)
        let error = try await Self.error(request, configuration)
        #expect(error.code == cause.code)
        // The last of the redirects has another URL.
        if cause.code != .httpTooManyRedirects { #expect(error.failingURL == url) }
        try Self.check(error)
    }

    private static func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.proxy = .none
        return configuration
    }

    /// Fails a data task with and without a delegate, which must make no difference; returns the error.
    private static func error(_ request: URLRequest, _ configuration: URLSessionConfiguration) async throws -> URLError {
        let plain = URLSession(configuration: configuration)
        defer { plain.invalidateAndCancel() }
        let awaited = await #expect(throws: URLError.self) { try await plain.data(for: request) }
        let recorder = CallRecorder()
        let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: request)
        task.resume()
        await recorder.completions.wait(for: 1)
        let error = try #require(recorder.seen.errors.first as? URLError)
        #expect(error.code == awaited?.code)
        #expect((task.error as? URLError)?.code == error.code)
        return error
    }

    /// Checks what every error has.
    private static func check(_ error: URLError, file: Bool = false) throws {
        let info = error.userInfo
        let url = try #require(info[NSURLErrorFailingURLErrorKey] as? URL)
        #expect(error.failingURL == url)
        #expect(info[URLError.failingURLStringKey] as? String == url.absoluteString.redactedURL)
        #expect(error.localizedDescription.isEmpty == false)
        let bridged = error as NSError
        #expect(bridged.domain == NSURLErrorDomain && bridged.code == error.code.rawValue)
        if url.isFileURL || file {
            #expect(info[NSUnderlyingErrorKey] is CocoaError)
        } else {
            #expect(info[NSUnderlyingErrorKey] is CurlewError)
        }
    }

    private static func error(_ url: String, _ configuration: URLSessionConfiguration = configuration()) async throws -> URLError {
        let error = try await error(URLRequest(url: try #require(URL(string: url))), configuration)
        try check(error)
        return error
    }

    // MARK: Connections

    // U3.2
    @Test func `a refused connection can't be made`() async throws {
        let port = try RefusingPort()
        #expect(try await Self.error("http://127.0.0.1:\(port.number)/").code == .cannotConnectToHost)
    }

    // U3.2
    @Test func `a connection that is closed without a byte is lost`() async throws {
        let server = try LoopbackServer { _, connection in
            connection.close()
            return nil
        }
        defer { server.stop() }
        #expect(try await Self.error(server.url("/")).code == .networkConnectionLost)
    }

    // U3.2
    @Test(arguments: ["SMTP ready\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"])
    func `what is not HTTP is a bad response`(_ text: String) async throws {
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: text)
            connection.close()
            return nil
        }
        defer { server.stop() }
        #expect(try await Self.error(server.url("/")).code == .badServerResponse)
    }

    /// Whether the kernel has no route to public addresses of IPv6, so that connecting fails at once.
    private static let hasNoIPv6 = NetworkReachabilityManager(host: "2001:db8::1")?.networkReachabilityStatus == .notReachable

    // U3.2
    @Test(.enabled(if: hasNoIPv6)) func `without a route there is no Internet`() async throws {
        #expect(try await Self.error("http://[2001:db8::1]/").code == .notConnectedToInternet)
    }

    // MARK: TLS

    enum Handling: CaseIterable { case none, byDefault, cancelled, rejected }

    private static func tlsError(
        _ name: String, knowing root: String?, _ handling: Handling = .none, _ change: (inout TLSServer.Options) -> Void = { _ in }
    ) async throws -> URLError {
        let authority = try await TLSAuthority.shared()
        let server = try await TLSServer(authority, name, change)
        let configuration = configuration()
        if let root { configuration.curlew.tls.certificateAuthorityFile = authority.path(root) }
        let url = try #require(URL(string: server.url))
        guard handling != .none else { return try await error(server.url, configuration) }
        let disposition: URLSession.AuthChallengeDisposition =
            switch handling {
            case .cancelled: .cancelAuthenticationChallenge
            case .rejected: .rejectProtectionSpace
            default: .performDefaultHandling
            }
        let recorder = CallRecorder(CallRecorder.Answers(challenge: { _ in (disposition, nil) }))
        let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        session.dataTask(with: url).resume()
        await recorder.completions.wait(for: 1)
        let error = try #require(recorder.seen.errors.first as? URLError)
        #expect(recorder.calls.elements.contains("challenge"))
        try check(error)
        return error
    }

    // U3.2
    @Test(.enabled(if: TLSAuthority.isAvailable), arguments: [Handling.none, .byDefault])
    func `what is wrong with a certificate has a code`(_ handling: Handling) async throws {
        #expect(try await Self.tlsError("expired", knowing: "root.pem", handling).code == .serverCertificateHasBadDate)
        #expect(try await Self.tlsError("self", knowing: "root.pem", handling).code == .serverCertificateHasUnknownRoot)
        #expect(try await Self.tlsError("elsewhere", knowing: "root.pem", handling).code == .serverCertificateUntrusted)
        #expect(try await Self.tlsError("other", knowing: "root.pem", handling).code == .serverCertificateUntrusted)
        #expect(try await Self.tlsError("good", knowing: nil, handling).code == .serverCertificateUntrusted)
    }

    // U3.2
    @Test(.enabled(if: TLSAuthority.isAvailable)) func `a delegate that cancels a challenge cancels the task`() async throws {
        #expect(try await Self.tlsError("good", knowing: "root.pem", .cancelled).code == .cancelled)
        #expect(try await Self.tlsError("good", knowing: "root.pem", .rejected).code == .serverCertificateUntrusted)
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let recorder = CallRecorder(CallRecorder.Answers(challenge: { _ in (.cancelAuthenticationChallenge, nil) }))
        let session = URLSession(configuration: Self.configuration(), delegate: recorder, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        session.dataTask(with: try #require(URL(string: server.url("/auth-basic?user=a&password=b")))).resume()
        await recorder.completions.wait(for: 1)
        let error = try #require(recorder.seen.errors.first as? URLError)
        #expect(error.code == .cancelled)
        try Self.check(error)
    }

    // U3.2
    @Test(.enabled(if: TLSAuthority.isAvailable)) func `a server that wants a certificate has a code`() async throws {
        let authority = try await TLSAuthority.shared()
        let error = try await Self.tlsError("good", knowing: "root.pem") { $0.clientAuthority = authority.path("other-root.pem") }
        #expect(error.code == .clientCertificateRequired)
    }

    // U3.2
    @Test func `a server without TLS has no secure connection`() async throws {
        let server = try LoopbackServer { _, _ in .ok("plain") }
        defer { server.stop() }
        let url = server.url("/").replacingOccurrences(of: "http://", with: "https://")
        #expect(try await Self.error(url).code == .secureConnectionFailed)
    }

    // MARK: Tasks

    // U3.2
    @Test func `a cancelled task has the code of that`() async throws {
        let session = URLSession(configuration: Self.configuration())
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: "http://127.0.0.1/x"))
        let log = Log<URLError?>()
        let task = session.dataTask(with: url) { _, _, error in log.append(error as? URLError) }
        task.cancel()
        await log.wait(for: 1)
        let error = try #require(log.elements.first ?? nil)
        #expect(error.code == .cancelled)
        try Self.check(error)
    }

    // U3.2
    @Test func `a failed download's error has its resume data`() async throws {
        let server = try LoopbackServer { request, _ in
            ServerResponse.generated(length: 100_000, seed: 1, etag: "\"a\"", for: request).misbehaving(.cut(after: 50_000))
        }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        let configuration = Self.configuration()
        configuration.curlew.temporaryDirectory = directory.url
        let recorder = CallRecorder()
        let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        session.downloadTask(with: try #require(URL(string: server.url("/x")))).resume()
        await recorder.completions.wait(for: 1)
        let error = try #require(recorder.seen.errors.first as? URLError)
        #expect(error.code == .networkConnectionLost)
        let data = try #require(error.userInfo[NSURLSessionDownloadTaskResumeData] as? Data)
        try Self.check(error)
        #expect(error.downloadTaskResumeData == data)
        // With it stays the part that was received.
        #expect(try contents(of: directory).count == 1)
        let (file, _) = try await session.download(resumeFrom: data)
        #expect(try Data(contentsOf: file) == GeneratedBody(seed: 1).data(count: 100_000))
    }

    // U3.2
    @Test func `the errors of files have codes`() async throws {
        let directory = try TemporaryDirectory()
        let session = URLSession(configuration: Self.configuration())
        defer { session.invalidateAndCancel() }
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        var request = URLRequest(url: try #require(URL(string: server.url("/body"))))
        request.httpMethod = "POST"
        let cases: [(URL, URLError.Code)] = [
            (directory.file("none"), .fileDoesNotExist), (directory.url, .fileIsDirectory),
            (URL(fileURLWithPath: "/dev/null"), .cannotOpenFile),
        ]
        for (file, code) in cases {
            let error = try #require(await #expect(throws: URLError.self) { try await session.upload(for: request, fromFile: file) })
            #expect(error.code == code, "\(file.path)")
            try Self.check(error, file: true)
        }
        let configuration = Self.configuration()
        configuration.curlew.temporaryDirectory = directory.file("missing")
        let other = URLSession(configuration: configuration)
        defer { other.invalidateAndCancel() }
        for url in [server.url("/bytes/5"), "data:,abc"] {
            let url = try #require(URL(string: url))
            let error = try #require(await #expect(throws: URLError.self) { try await other.download(from: url) })
            #expect(error.code == .cannotCreateFile, "\(url)")
            try Self.check(error, file: true)
        }
    }

    // U3.2
    @Test func `resume data that is none fails`() async throws {
        let session = URLSession(configuration: Self.configuration())
        defer { session.invalidateAndCancel() }
        let error = await #expect(throws: URLError.self) { try await session.download(resumeFrom: Data("no".utf8)) }
        #expect(error?.userInfo[NSUnderlyingErrorKey] is CurlewError)
    }

    // U3.2
    @Test func `the secrets of a URL are in no text of an error`() async throws {
        let port = try RefusingPort()
        let url = try #require(URL(string: "http://ann:hunter2@127.0.0.1:\(port.number)/x?access_token=hunter2&page=3"))
        let error = try await Self.error(URLRequest(url: url), Self.configuration())
        #expect(error.failingURL == url)
        let string = try #require(error.userInfo[URLError.failingURLStringKey] as? String)
        #expect(string.contains("page=3"))
        let unsupported = try #require(URL(string: "ftp://ann:hunter2@127.0.0.1/"))
        let other = try await Self.error(URLRequest(url: unsupported), Self.configuration())
        var dumped = ""
        dump(error, to: &dumped)
        for text in [string, error.localizedDescription, "\(error)", "\(error as any Error)", dumped, other.localizedDescription] {
            #expect(!text.contains("hunter2"), "\(text)")
        }
    }

    // U3.2
    @Test func `errors of others pass as they are`() {
        let session = URLSession(configuration: Self.configuration())
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: URL(fileURLWithPath: "/x"))
        defer { task.cancel() }
        #expect(URLError.of(TestError("mine"), task) is TestError)
        #expect((URLError.of(POSIXError(.EPIPE), task) as? POSIXError)?.code == .EPIPE)
        #expect((URLError.of(POSIXError(.EACCES), task) as? URLError)?.code == .noPermissionsToReadFile)
        #expect((URLError.of(CocoaError(.fileWriteOutOfSpace), task) as? URLError)?.code == .cannotWriteToFile)
        #expect(URLError.of(CocoaError(.coderInvalidValue), task) is CocoaError)
        #expect(URLError.of(.timedOut, task).failingURL == URL(fileURLWithPath: "/x"))
    }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Uploads of forms that are handed over.
@Suite(.timeLimit(.minutes(10))) struct FormUploadTests {
    private let server: LoopbackServer
    private let received: Log<(request: ServerRequest, form: MultipartBody)>
    private let directory: TemporaryDirectory
    /// The session's directory, in which nothing must appear.
    private let temporary: TemporaryDirectory
    private let manager: SessionManager

    init() throws {
        let received = Log<(request: ServerRequest, form: MultipartBody)>()
        let standard = ServerRoutes.standard
        server = try LoopbackServer(bodies: ServerRoutes.bodies) { request, connection in
            guard request.path == "/form" || request.path == "/auth-form" else { return try standard(request, connection) }
            if request.path == "/auth-form", request.header("Authorization") == nil {
                return .status(401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"x\"")])
            }
            received.append((request, try MultipartBody(request)))
            return .ok("taken")
        }
        self.received = received
        directory = try TemporaryDirectory()
        let temporary = try TemporaryDirectory()
        self.temporary = temporary
        manager = makeManager { $0.temporaryDirectory = temporary.url }
    }

    private func form(_ fill: (MultipartFormData) throws -> Void) rethrows -> MultipartFormData {
        let form = MultipartFormData()
        try fill(form)
        return form
    }

    private static func pieces(_ bytes: Data) -> AsyncStream<Data> {
        AsyncStream { continuation in
            continuation.yield(bytes.prefix(10))
            continuation.yield(bytes.dropFirst(10))
            continuation.finish()
        }
    }

    @Test("data, a file, a stream and a sequence arrive with the exact length, its total and its progress") func allKinds() async throws {
        let bytes = GeneratedBody().data(count: 1_300_000)
        let file = try directory.write(bytes, to: "noextension")
        let form = form { form in
            form.append(Data("text".utf8), withName: "plain")
            form.append(file, withName: "file")
            form.append(InputStream(data: bytes), withLength: 1_300_000, name: "stream", fileName: "s.bin", mimeType: "x/y")
            form.append(Self.pieces(bytes), withLength: 1_300_000, name: "sequence", fileName: "q.bin", mimeType: "x/y")
        }
        let request = manager.upload(form, to: server.url("/form"), headers: ["X-One": "1"])
        let progress = Log<Int64>()
        let answer = try await request.uploadProgress { progress.append($0.completedUnitCount) }.validate().serializingString().value
        #expect(answer == "taken")
        let (server, body) = try #require(received.elements.first)
        #expect(server.method == "POST" && server.header("X-One") == "1" && server.header("Transfer-Encoding") == nil)
        #expect(server.header("Content-Length") == "\(server.bodyLength)")
        #expect(body.parts.map(\.body) == [Data("text".utf8), bytes, bytes, bytes])
        #expect(body.parts.map { $0.header("Content-Type") } == [nil, "application/octet-stream", "x/y", "x/y"])
        #expect(
            request.uploadProgress.completedUnitCount == server.bodyLength && request.uploadProgress.totalUnitCount == server.bodyLength)
        #expect(try contents(of: temporary).isEmpty)
    }

    @Test("a form as the body of a URLRequest, with options and an interceptor") func urlRequest() async throws {
        var urlRequest = try URLRequest(url: server.url("/form"), method: .put)
        urlRequest.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        let interceptor = Interceptor(adapters: [Adapter { $0.setValue("1", forHTTPHeaderField: "X-Adapted") }])
        let form = form { $0.append(Data("a".utf8), withName: "a") }
        let request = manager.upload(form, with: urlRequest, interceptor: interceptor, options: RequestOptions(name: "form"))
        #expect(request.name == "form")
        #expect(try await request.validate().serializingString().value == "taken")
        let server = try #require(received.elements.first).request
        #expect(server.method == "PUT" && server.header("X-Adapted") == "1")
        #expect(server.header("Content-Type") == form.contentType)
    }

    @Test("retries, redirects and credentials send the files again", arguments: ["retry", "redirect", "credentials"])
    func sentAgain(_ cause: String) async throws {
        let bytes = GeneratedBody().data(count: 400_000)
        let file = try directory.write(bytes, to: "call.ogg")
        let form = form { form in
            form.append(file, withName: "sound")
            form.append({ Self.pieces(bytes) }, withLength: 400_000, name: "made", fileName: "made", mimeType: "a/b")
        }
        manager.retrier = .some(Retrier.attempts(2))
        let path =
            switch cause {
            case "retry": "/flaky?fail=2"
            case "redirect": "/redirect-to?url=/form&status=307"
            default: "/auth-form"
            }
        let request = manager.upload(form, to: server.url(path)).authenticate(user: "u", password: "p").validate()
        let answer = try await request.serializingString().value
        #expect(answer == (cause == "retry" ? "Attempt 3" : "taken"))
        #expect(server.requestCount == (cause == "retry" ? 3 : 2))
        #expect(Set(server.requests.map(\.bodyChecksum)).count == 1 && Set(server.requests.map(\.bodyLength)).count == 1)
        if cause != "retry" { #expect(received.elements.first?.form.parts.map(\.body) == [bytes, bytes]) }
        #expect(try contents(of: temporary).isEmpty)
    }

    @Test("a form with a stream is not sent twice", arguments: ["retry", "redirect"]) func streamOnce(_ cause: String) async throws {
        let form = form {
            $0.append(InputStream(data: Data("abc".utf8)), withLength: 3, name: "s", fileName: "s", mimeType: "a/b")
        }
        manager.retrier = Retrier.attempts(2)
        let path = cause == "retry" ? "/flaky?fail=2" : "/redirect-to?url=/form&status=307"
        let response = await manager.upload(form, to: server.url(path)).validate().serializingData().response
        if cause == "retry" {
            #expect(response.error?.unacceptableStatus == 503)
        } else if case .bodyNotRepeatable? = response.error?.redirectFailure {
        } else {
            Issue.record("\(String(describing: response.error))")
        }
        #expect(server.requestCount == 1)
        guard
            case CurlewError.multipartEncodingFailed(.bodyPartStreamConsumed, _)? = await manager.upload(form, to: server.url("/form"))
                .serializingData().response.error
        else {
            Issue.record("sent twice")
            return
        }
    }

    @Test("a file that is truncated while it is sent fails the request as a part of another length") func truncatedFile() async throws {
        let gate = Gate()
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            connection.wait(until: gate)
            connection.waitUntilClosed()
            return nil
        }
        let file = directory.file("large")
        #expect(FileManager.default.createFile(atPath: file.path, contents: nil) && truncate(file.path, 200 << 20) == 0)
        let form = form { $0.append(file, withName: "large") }
        let request = manager.upload(form, to: server.url("/"))
        let task = Task { await request.serializingData().response.error }
        #expect(await gate.arrivals())
        #expect(truncate(file.path, 1 << 10) == 0)
        gate.open()
        guard case CurlewError.multipartEncodingFailed(.bodyPartLengthMismatch(200 << 20, 1 << 10), _)? = await task.value else {
            Issue.record("\(String(describing: await task.value))")
            return
        }
    }

    @Test("a refusal, a cancellation and the end of the session release the form's files", arguments: ["refusal", "cancel", "manager"])
    func released(_ ending: String) async throws {
        let gate = Gate()
        let server = try LoopbackServer(bodies: { _ in ending == "refusal" ? .refused(.status(413)) : .unread }) { _, connection in
            connection.wait(until: gate)
            return nil
        }
        defer { gate.open() }
        let file = directory.file("large")
        #expect(FileManager.default.createFile(atPath: file.path, contents: nil) && truncate(file.path, 200 << 20) == 0)
        let request = manager.upload(form { $0.append(file, withName: "large") }, to: server.url("/"))
        let task = Task { await request.validate().serializingData().response.error }
        if ending != "refusal" { #expect(await gate.arrivals()) }
        if ending == "cancel" { request.cancel() }
        if ending == "manager" { manager.invalidateAndCancel() }
        #expect(await task.value != nil)
        let path = file.path
        #expect(await eventually { Self.openCount(of: path) == 0 })
        withExtendedLifetime(request) {}
    }

    /// How often this process has a file open.
    private static func openCount(of path: String) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.count { (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path }
    }

    @Test("the closure's form with a file is not copied, and the file may be removed once it is encoded") func closure() async throws {
        let bytes = GeneratedBody().data(count: 300_000)
        let file = try directory.write(bytes, to: "call.ogg")
        let temporary = temporary
        manager.retrier = Retrier.attempts(1)
        let results = Log<(SessionManager.MultipartFormDataEncodingResult, [String])>()
        manager.startRequestsImmediately = false
        manager.upload(
            multipartFormData: { $0.append(file, withName: "sound") }, usingThreshold: 1_000,
            to: server.url("/redirect-to?url=/flaky?fail=1%26key=file&status=307")
        ) { results.append(($0, (try? contents(of: temporary)) ?? ["?"])) }
        await results.wait(for: 1)
        guard case (.success(let request, false, nil), let files)? = results.elements.first else {
            Issue.record("\(results.elements)")
            return
        }
        #expect(files.isEmpty)
        try FileManager.default.removeItem(at: file)
        request.resume()
        #expect(try await request.validate().serializingString().value == "Attempt 2")
        #expect(Set(server.requests.map(\.bodyLength)).count == 1 && server.requestCount == 4)
        #expect(Set(server.requests.map(\.bodyChecksum)).count == 1)
    }

    @Test("nginx receives the whole form over TLS and HTTP/2", .needsNginx) func nginx() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        let file = try directory.write(Data(count: 3_000_000), to: "call.ogg")
        let form = form { form in
            form.append(file, withName: "a")
            form.append(Data(count: 100_000), withName: "b")
        }
        let length = try form.encode().count
        for url in [nginx.http, nginx.tls, nginx.tlsHTTP1] {
            #expect(try await manager.upload(form, to: url + "/upload").validate().serializingString().value == "\(length)\n", "\(url)")
        }
    }

    @Test("a file far larger than the memory is sent from where it lies, in a process of its own")
    func largeFile() async throws {
        let size: Int64 = TestLength.value(Scale.largeFile, long: 10 << 30)
        let server = try LoopbackServer.standard(recording: false)
        let file = directory.file("sparse")
        #expect(FileManager.default.createFile(atPath: file.path, contents: nil) && truncate(file.path, off_t(size)) == 0)
        let start = ContinuousClock.now
        let report = try await Probe.run("form", server.url("/upload"), file.path)
        #expect(report.status == 0)
        let length = try #require(report["length"])
        #expect(Int64(length) > size && report["announced"] == length)
        let (peak, written) = (try #require(report["peak"]), try #require(report["written"]))
        print("\(size >> 20) MiB form: \(start.duration(to: .now)), peak \(peak >> 10) KiB, written \(written) bytes")
        #expect(written == 0)
        if Scale.limitsMemory { #expect(peak < 64 << 20) }
    }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct MultipartTests {
    typealias Encoding = SessionManager.MultipartFormDataEncodingResult

    private let server: LoopbackServer
    private let received: Log<(request: ServerRequest, form: MultipartBody)>
    /// The directory for forms; it contains nothing else.
    private let temporary: TemporaryDirectory
    private let manager: SessionManager

    init() throws {
        let received = Log<(request: ServerRequest, form: MultipartBody)>()
        let standard = ServerRoutes.standard
        server = try LoopbackServer(bodies: ServerRoutes.bodies) { request, connection in
            guard request.path != "/form" else {
                received.append((request, try MultipartBody(request)))
                return .ok("taken")
            }
            return try standard(request, connection)
        }
        self.received = received
        let temporary = try TemporaryDirectory()
        self.temporary = temporary
        manager = makeManager { $0.temporaryDirectory = temporary.url }
    }

    private func encode(
        _ path: String = "/form", threshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        _ fill: @escaping @Sendable (MultipartFormData) -> Void
    ) async -> Encoding {
        await withTrackedContinuation { continuation in
            manager.upload(multipartFormData: fill, usingThreshold: threshold, to: server.url(path)) { continuation.resume(returning: $0) }
        }
    }

    private func upload(
        _ path: String = "/form", threshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        _ fill: @escaping @Sendable (MultipartFormData) -> Void
    ) async throws -> UploadRequest {
        switch await encode(path, threshold: threshold, fill) {
        case .success(let request, let isFromDisk, let url):
            #expect(isFromDisk == (url != nil))
            return request
        case .failure(let error): throw error
        }
    }

    // MARK: Content

    @Test("data, a file and a stream are uploaded from memory and from disk", arguments: [0, 1_000_000] as [UInt64])
    func allKinds(_ threshold: UInt64) async throws {
        let directory = try TemporaryDirectory()
        let bytes = GeneratedBody().data(count: 300_000)
        let file = try directory.write(bytes, to: "Große Brachvögel.png")
        let request = try await upload(threshold: threshold) { form in
            form.append(Data("text".utf8), withName: "plain")
            form.append(Data("{}".utf8), withName: "json", mimeType: "application/json")
            form.append(file, withName: "photo")
            form.append(InputStream(data: bytes), withLength: 300_000, name: "stream", fileName: "s.bin", mimeType: "x/y")
            form.append(InputStream(data: Data("own".utf8)), withLength: 3, headers: ["Content-Disposition": "attachment", "X-One": "1"])
        }
        #expect(try await request.validate().serializingString().value == "taken")
        let (server, form) = try #require(received.elements.first)
        let length = try #require(server.header("Content-Length"))
        #expect(length == "\(server.bodyLength)")
        #expect(server.header("Transfer-Encoding") == nil)
        #expect(server.method == "POST")
        let fields = form.parts.map { $0.headers.map { "\($0.name): \($0.value)" } }
        #expect(
            fields == [
                [#"Content-Disposition: form-data; name="plain""#],
                [#"Content-Disposition: form-data; name="json""#, "Content-Type: application/json"],
                [#"Content-Disposition: form-data; name="photo"; filename="Große Brachvögel.png""#, "Content-Type: image/png"],
                [#"Content-Disposition: form-data; name="stream"; filename="s.bin""#, "Content-Type: x/y"],
                ["Content-Disposition: attachment", "X-One: 1"],
            ])
        #expect(form.parts.map(\.body) == [Data("text".utf8), Data("{}".utf8), bytes, bytes, Data("own".utf8)])
        #expect(try contents(of: temporary).isEmpty)
    }

    @Test("a large form is uploaded from disk with its exact length, and its progress reaches the total")
    func largeForm() async throws {
        let bytes = GeneratedBody().data(count: 12_000_000)
        let result = await encode { $0.append(bytes, withName: "large", fileName: "large", mimeType: "a/b") }
        guard case .success(let request, true, let url?) = result else {
            Issue.record("\(result)")
            return
        }
        let progress = Log<(completed: Int64, total: Int64)>()
        let handled = Log<(error: Bool, isThere: Bool)>()
        request.uploadProgress { progress.append(($0.completedUnitCount, $0.totalUnitCount)) }
            .validate().response { handled.append(($0.error != nil, FileManager.default.fileExists(atPath: url.path))) }
        await handled.wait(for: 1)
        #expect(handled.elements.map(\.error) == [false])
        #expect(handled.elements.map(\.isThere) == [false])
        let (server, form) = try #require(received.elements.first)
        #expect(server.header("Content-Length") == "\(server.bodyLength)")
        #expect(form.parts.map(\.body) == [bytes])
        #expect(progress.elements.last?.completed == server.bodyLength)
        #expect(progress.elements.last?.total == server.bodyLength)
    }

    @Test(
        "no name, file name or type can inject a header or a part",
        arguments: [
            "\"", "a\r\nX-Injected: 1", "a\"\r\nX-Injected: 1\r\n\r\ninjected", "\r\n--BOUNDARY--\r\n", "a\"; name=\"admin", "\n\n",
            "é\"\r",
        ])
    func injection(_ name: String) async throws {
        let request = try await upload { form in
            form.boundary = "BOUNDARY"
            form.append(Data("body".utf8), withName: name, fileName: name, mimeType: "text/plain")
        }
        #expect(try await request.validate().serializingString().value == "taken")
        let form = try #require(received.elements.first).form
        #expect(form.parts.count == 1)
        #expect(form.parts.first?.headers.map(\.name) == ["Content-Disposition", "Content-Type"])
        #expect(form.parts.first?.text == "body")
        let escaped = name.utf8.reduce(into: [UInt8]()) { bytes, byte in
            bytes +=
                [0x22, 0x0D, 0x0A].contains(byte) ? Array("%\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16).uppercased())".utf8) : [byte]
        }
        let value = String(decoding: escaped, as: UTF8.self)
        #expect(form.parts.first?.header("Content-Disposition") == "form-data; name=\"\(value)\"; filename=\"\(value)\"")
    }

    @Test("a form without parts, and one with only empty parts") func emptyForms() async throws {
        for threshold in [0, 1] as [UInt64] {
            let none = try await upload(threshold: threshold) { _ in }
            #expect(try await none.validate().serializingString().value == "taken")
            let empty = try await upload(threshold: threshold) { form in
                form.append(Data(), withName: "a")
                form.append(Data(), withName: "b")
            }
            #expect(try await empty.validate().serializingString().value == "taken")
        }
        #expect(received.elements.map { $0.form.parts.map(\.text) } == [[], ["", ""], [], ["", ""]])
    }

    @Test("a custom request carries the form, encoded on a custom queue") func ownRequest() async throws {
        var urlRequest = URLRequest(url: try server.url("/form").asURL())
        urlRequest.httpMethod = "PUT"
        urlRequest.setValue("1", forHTTPHeaderField: "X-One")
        let result = await withTrackedContinuation { continuation in
            manager.upload(
                multipartFormData: { $0.append(Data("a".utf8), withName: "a") }, with: urlRequest, queue: DispatchQueue(label: "own")
            ) { continuation.resume(returning: $0) }
        }
        guard case .success(let request, false, nil) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(try await request.validate().serializingString().value == "taken")
        let server = try #require(received.elements.first).request
        #expect(server.method == "PUT")
        #expect(server.header("X-One") == "1")
    }

    @Test("the global functions") func globalFunctions() async throws {
        let urlRequest = try URLRequest(url: server.url("/form"), method: .patch)
        let results = Log<Encoding>()
        Curlew.upload(multipartFormData: { $0.append(Data("a".utf8), withName: "a") }, to: server.url("/form"), headers: ["X-One": "1"]) {
            results.append($0)
        }
        Curlew.upload(multipartFormData: { $0.append(Data("b".utf8), withName: "b") }, with: urlRequest, encodingCompletion: nil)
        // The completion of `SessionManager.default` runs on the main queue, which belongs to the test runner; the requests are sent
        // regardless.
        await received.wait(for: 2)
        #expect(Set(received.elements.map(\.request.method)) == ["POST", "PATCH"])
        #expect(Set(received.elements.map { $0.form.parts.map(\.text) }) == [["a"], ["b"]])
    }

    // MARK: Removal of the file

    @Test("the file is removed when the connection is lost and when the request is cancelled", arguments: ["cut", "cancel"])
    func fileRemovedAfterFailure(_ kind: String) async throws {
        let gate = Gate()
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            connection.wait(until: gate)
            connection.reset()
            return nil
        }
        let result = await withTrackedContinuation { continuation in
            manager.upload(multipartFormData: { $0.append(Data(count: 20_000_000), withName: "a") }, to: server.url("/")) {
                continuation.resume(returning: $0)
            }
        }
        guard case .success(let request, true, _) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(await gate.arrivals())
        #expect(try contents(of: temporary).count == 1)
        if kind == "cut" { gate.open() } else { request.cancel() }
        let response = await request.serializingData().response
        #expect(kind == "cut" ? response.error?.transferFailure != nil : response.error?.isCancelled == true)
        #expect(try contents(of: temporary).isEmpty)
        gate.open()
    }

    @Test("a retry sends the same form, and the file is kept until then", arguments: [0, 1_000_000] as [UInt64])
    func retry(_ threshold: UInt64) async throws {
        let files = Log<Int>()
        let directory = temporary
        manager.retrier = Retrier { request, _, completion in
            files.append((try? contents(of: directory).count) ?? -1)
            completion(request.retryCount < 2, 0)
        }
        let request = try await upload("/flaky?fail=2", threshold: threshold) { form in
            form.append(
                InputStream(data: GeneratedBody().data(count: 200_000)), withLength: 200_000, name: "a", fileName: "a", mimeType: "a/b")
        }
        let response = await request.validate().serializingString().response
        #expect(response.value == "Attempt 3")
        #expect(Set(server.requests.map(\.bodyChecksum)).count == 1)
        #expect(server.requests.map(\.bodyLength).allSatisfy { $0 > 200_000 })
        #expect(server.requestCount == 3)
        #expect(files.elements == (threshold == 0 ? [1, 1] : [0, 0]))
        #expect(try contents(of: temporary).isEmpty)
    }

    @Test("a redirect that preserves the method sends the body again", arguments: [0, 1_000_000] as [UInt64])
    func redirect(_ threshold: UInt64) async throws {
        let request = try await upload("/redirect-to?url=/form&status=307", threshold: threshold) {
            $0.append(Data("again".utf8), withName: "a")
        }
        #expect(try await request.validate().serializingString().value == "taken")
        #expect(received.elements.map { $0.form.parts.map(\.text) } == [["again"]])
        #expect(try contents(of: temporary).isEmpty)
    }

    @Test("nothing is left when the manager is released during many uploads") func releasedManager() async throws {
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            connection.waitUntilClosed()
            return nil
        }
        let directory = temporary
        let ended = Log<Bool>()
        var manager: SessionManager? = makeManager { $0.temporaryDirectory = directory.url }
        for _ in 0..<20 {
            manager?.upload(multipartFormData: { $0.append(Data(count: 300_000), withName: "a") }, usingThreshold: 0, to: server.url("/")) {
                guard case .success(let request, _, _) = $0 else { return ended.append(true) }
                request.response { ended.append($0.error != nil) }
            }
        }
        #expect(await server.waitForRequests(1))
        manager = nil
        await ended.wait(for: 20)
        #expect(ended.elements == Array(repeating: true, count: 20))
        #expect(try contents(of: directory).isEmpty)
    }

    @Test("many concurrent forms are uploaded completely and leave nothing behind") func manyForms() async throws {
        let (suite, failures) = (self, Log<String>())
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<60 {
                group.addTask {
                    do {
                        let request = try await suite.upload(threshold: index % 2 == 0 ? 0 : 1_000_000) {
                            $0.append(GeneratedBody(seed: UInt64(index)).data(count: index * 2_000), withName: "\(index)")
                        }
                        _ = try await request.validate().serializingString().value
                    } catch {
                        failures.append("\(error)")
                    }
                }
            }
        }
        #expect(failures.elements == [])
        let sums = received.elements.compactMap { $0.form.parts.first }.map { CRC32.checksum(of: $0.body) }.sorted()
        #expect(sums == (0..<60).map { CRC32.checksum(of: GeneratedBody(seed: UInt64($0)).data(count: $0 * 2_000)) }.sorted())
        #expect(try contents(of: temporary).isEmpty)
    }

    @Test("nginx receives the whole form over TLS and HTTP/2", .needsNginx, arguments: [0, 10_000_000] as [UInt64])
    func nginx(_ threshold: UInt64) async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { [temporary] in
            $0.tls.certificateAuthorityFile = nginx.authorities
            $0.temporaryDirectory = temporary.url
        }
        let form = MultipartFormData()
        form.boundary = "B"
        form.append(Data(count: 3_000_000), withName: "a")
        let length = try form.encode().count
        for url in [nginx.http, nginx.tls, nginx.tlsHTTP1] {
            let result: Encoding = await withTrackedContinuation { continuation in
                manager.upload(
                    multipartFormData: {
                        $0.boundary = "B"
                        $0.append(Data(count: 3_000_000), withName: "a")
                    }, usingThreshold: threshold, to: url + "/upload"
                ) { continuation.resume(returning: $0) }
            }
            guard case .success(let request, _, _) = result else {
                Issue.record("\(result)")
                continue
            }
            #expect(try await request.validate().serializingString().value == "\(length)\n", "\(url)")
        }
        #expect(try contents(of: temporary).isEmpty)
    }
}

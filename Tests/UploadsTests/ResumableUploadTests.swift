// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewUploads
import Testing

/// A2.2: tus 1.0 over a line that is cut, and by a server that says odd things.
@Suite(.timeLimit(.minutes(2))) struct ResumableUploadTests {
    private static let size = 8 << 20
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Quick retries.
    private static func options(_ change: (inout ResumableUpload.Options) -> Void = { _ in }) -> ResumableUpload.Options {
        var options = ResumableUpload.Options()
        options.retryPolicy = RetryPolicy(retryLimit: 4, exponentialBackoffScale: 0.001)
        change(&options)
        return options
    }

    private func file(_ size: Int = size, name: String = "file", seed: UInt64 = 0) throws -> URL {
        try directory.write(GeneratedBody(seed: seed).data(count: size), to: name)
    }

    private func kind(_ upload: ResumableUpload) async throws -> ResumableUploadError.Kind? {
        let error = await #expect(throws: ResumableUploadError.self) { try await upload.response }
        return error?.kind
    }

    // A2.2
    @Test("a file arrives, with what was said about it, and its state is gone") func whole() async throws {
        let server = try TusServer()
        let options = Self.options { $0.metadata = ["filename": "räder.bin", "empty": ""] }
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: options)
        let response = try await upload.response
        #expect(server.methods() == ["OPTIONS", "POST", "PATCH"])
        #expect(server.entries[1].header("Upload-Metadata") == "empty,filename csOkZGVyLmJpbg==")
        #expect(server.entries[1].header("Upload-Length") == "\(Self.size)")
        #expect(server.entries[0].header("Tus-Resumable") == nil)
        #expect(server.uploads["/files/1"].map { GeneratedBody().matches($0.bytes) } == true)
        #expect(response.uploadURL?.absoluteString == server.url("/files/1"))
        #expect(response.head.statusCode == 204)
        #expect(response.length == Int64(Self.size))
        #expect(response.sent == Int64(Self.size))
        #expect(response.resumed == 0)
        #expect(upload.progress == ResumableUpload.Progress(completed: response.length, confirmed: response.length, total: response.length))
        #expect(try await upload.value.isEmpty)
        #expect(try contents(of: directory) == ["file"])
    }

    // A2.2
    @Test("six cuts cost no bytes that the server has", arguments: [false, true]) func cuts(resets: Bool) async throws {
        var settings = TusServer.Settings()
        settings.cuts = (1...6).map { Int64($0) * 1_150_001 }
        settings.resets = resets
        let server = try TusServer(settings)
        let retries = Lock(0)
        let options = Self.options { options in
            // Each cut comes after progress.
            options.retryPolicy = RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0.001)
            options.onWait = { _ in retries.withLock { $0 += 1 } }
        }
        let response = try await makeManager().resumableUpload(try file(), to: server.url(), options: options).response
        #expect(server.uploads["/files/1"].map { GeneratedBody().matches($0.bytes) && $0.bytes.count == Self.size } == true)
        #expect(server.methods().filter { $0 == "POST" }.count == 1)
        #expect(server.methods().filter { $0 == "HEAD" }.count == 6)
        #expect(retries.withLock { $0 } == 6)
        let ratio = Double(server.received) / Double(Self.size)
        #expect(ratio <= 1.05)
        #expect(response.length == Int64(Self.size))
    }

    // A2.2
    @Test("chunks have the given size, and a checksum that the server verifies", arguments: ["sha1,sha256", "sha1"])
    func chunks(algorithms: String) async throws {
        var settings = TusServer.Settings()
        settings.algorithms = algorithms
        settings.cuts = [400_000]
        settings.override = { entry, number in entry.method == "PATCH" && number == 1 ? .status(460) : nil }
        let server = try TusServer(settings)
        let options = Self.options { options in
            options.chunkSize = 256 << 10
            options.verifiesChunks = true
        }
        _ = try await makeManager().resumableUpload(try file(768 << 10), to: server.url(), options: options).response
        let patches = server.entries.filter { $0.method == "PATCH" }
        let algorithm = algorithms == "sha1" ? "sha1 " : "sha256 "
        #expect(patches.allSatisfy { $0.header("Upload-Checksum")?.hasPrefix(algorithm) == true })
        #expect(patches.allSatisfy { $0.header("Content-Length") == "262144" })
        #expect(server.uploads["/files/1"].map { GeneratedBody().matches($0.bytes) && $0.bytes.count == 768 << 10 } == true)
    }

    // A2.2
    @Test("the first chunk goes with the creation, if that is asked for and supported", arguments: [true, false])
    func creationWithUpload(isSupported: Bool) async throws {
        var settings = TusServer.Settings()
        if !isSupported { settings.extensions = "creation" }
        let server = try TusServer(settings)
        let options = Self.options { $0.sendsDataWithCreation = true }
        let response = try await makeManager().resumableUpload(try file(100_000), to: server.url(), options: options).response
        #expect(server.methods() == (isSupported ? ["OPTIONS", "POST"] : ["OPTIONS", "POST", "PATCH"]))
        #expect(server.uploads["/files/1"].map { GeneratedBody().matches($0.bytes) && $0.bytes.count == 100_000 } == true)
        #expect(response.sent == 100_000)
    }

    // A2.2
    @Test("an empty file is complete with its creation") func empty() async throws {
        let server = try TusServer()
        let response = try await makeManager().resumableUpload(try file(0), to: server.url(), options: Self.options()).response
        #expect(server.methods() == ["OPTIONS", "POST"])
        #expect(server.uploads["/files/1"]?.length == 0)
        #expect(response.head.statusCode == 201)
        #expect(try contents(of: directory) == ["file"])
    }

    // A2.2
    @Test("a paused upload sends nothing until it is resumed, and then the rest") func pause() async throws {
        let (reached, isPaused) = (Gate(), Gate())
        var settings = TusServer.Settings()
        settings.onBytes = { count in
            guard count > 1 << 20 else { return }
            reached.open()
            // Else the upload could end before it is paused.
            isPaused.wait()
        }
        let server = try TusServer(settings)
        defer {
            reached.open()
            isPaused.open()
        }
        let upload = makeManager().resumableUpload(try file(32 << 20), to: server.url(), options: Self.options())
        async let response = upload.response
        #expect(await reached.wait())
        upload.pause()
        isPaused.open()
        #expect(await eventually { server.openConnections == 0 })
        let sent = server.received
        #expect(upload.progress.completed < 32 << 20)
        upload.resume()
        let result = try await response
        #expect(server.entries.last { $0.method == "PATCH" }?.header("Upload-Offset") == "\(sent)")
        #expect(server.received == 32 << 20)
        #expect(result.resumed == 0)
        #expect(server.uploads["/files/1"].map { GeneratedBody().matches($0.bytes) } == true)
    }

    // A2.2
    @Test(
        "a cancelled upload is continued by the next one, of the same file to the same server with the same credentials",
        arguments: [nil, "metadata", "credentials", "signer", "endpoint", "modified", "replaced", "dialect"] as [String?])
    func cancelled(change: String?) async throws {
        var settings = TusServer.Settings()
        settings.cuts = [3_000_000]
        let server = try TusServer(settings)
        let file = try file()
        let state = directory.file("state")
        var options = Self.options { options in
            options.stateFile = state
            options.headers = ["Authorization": "Bearer one"]
            options.retryPolicy = RetryPolicy(retryLimit: 0)
        }
        let first = makeManager().resumableUpload(file, to: server.url(), options: options)
        await #expect(throws: CurlewError.self) { try await first.response }
        let text = try String(contentsOf: state, encoding: .utf8)
        #expect(!text.contains("one\""))
        #expect(!text.contains("Bearer"))
        #expect(try FileManager.default.attributesOfItem(atPath: state.path)[.posixPermissions] as? Int == 0o600)
        var endpoint = server.url()
        switch change {
        case "metadata": options.metadata = ["filename": "other"]
        case "credentials": options.headers = ["Authorization": "Bearer two"]
        case "signer": options.requestOptions.signer = OtherOriginTests.Signer(identity: "two")
        case "endpoint": endpoint += "?other"
        case "modified":
            try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1_000_000)], ofItemAtPath: file.path)
        case "replaced":
            let (copy, date) = (directory.file("copy"), try FileManager.default.attributesOfItem(atPath: file.path)[.modificationDate])
            try FileManager.default.copyItem(at: file, to: copy)
            try FileManager.default.setAttributes([.modificationDate: try #require(date)], ofItemAtPath: copy.path)
            #expect(rename(copy.path, file.path) == 0)
        case "dialect":
            try Data(text.replacing("\"tus\"", with: "\"other\"").utf8).write(to: state)
        default: break
        }
        let response = try await makeManager().resumableUpload(file, to: endpoint, options: options).response
        #expect(server.methods().filter { $0 == "POST" }.count == (change == nil ? 1 : 2))
        #expect(response.resumed == (change == nil ? 3_000_000 : 0))
        #expect(server.received == Int64(Self.size) + (change == nil ? 0 : 3_000_000))
        #expect(try contents(of: directory) == ["file"])
        let last = server.uploads[change == nil ? "/files/1" : "/files/2"]
        #expect(last.map { GeneratedBody().matches($0.bytes) && $0.bytes.count == Self.size } == true)
    }

    // A2.2
    @Test("by its SHA-256 a file is the same also after it was copied, and another one is not", arguments: [true, false])
    func content(isSame: Bool) async throws {
        var settings = TusServer.Settings()
        settings.cuts = [3_000_000]
        let server = try TusServer(settings)
        let file = try file()
        var options = Self.options { options in
            options.verifiesContent = true
            options.retryPolicy = RetryPolicy(retryLimit: 0)
        }
        await #expect(throws: CurlewError.self) {
            try await makeManager().resumableUpload(file, to: server.url(), options: options).response
        }
        try FileManager.default.removeItem(at: file)
        _ = try self.file(seed: isSame ? 0 : 1)
        options.retryPolicy = RetryPolicy(retryLimit: 1)
        let response = try await makeManager().resumableUpload(file, to: server.url(), options: options).response
        #expect(response.resumed == (isSame ? 3_000_000 : 0))
        let last = server.uploads[isSame ? "/files/1" : "/files/2"]
        #expect(last.map { GeneratedBody(seed: isSame ? 0 : 1).matches($0.bytes) } == true)
    }

    // A2.2
    @Test(
        "a cancelled upload is removed from the server if that is asked for, also by a later process, and if its file has changed or is gone",
        arguments: [false, true], ["same", "changed", "gone"])
    func removal(isLater: Bool, change: String) async throws {
        var settings = TusServer.Settings()
        settings.cuts = [1_000_000]
        let server = try TusServer(settings)
        let file = try file()
        let options = Self.options { $0.retryPolicy = RetryPolicy(retryLimit: 0) }
        var upload = makeManager().resumableUpload(file, to: server.url(), options: options)
        await #expect(throws: CurlewError.self) { try await upload.response }
        if isLater { upload = makeManager().resumableUpload(file, to: server.url(), options: options) }
        if change != "same" { try FileManager.default.removeItem(at: file) }
        if change == "changed" { _ = try self.file(1000) }
        try await upload.cancel(removingFromServer: true)
        #expect(server.uploads.isEmpty)
        #expect(server.methods().last == "DELETE")
        #expect(try contents(of: directory) == (change == "gone" ? [] : ["file"]))
        await #expect(throws: CurlewError.self) { try await upload.response }
        guard change != "gone" else { return }
        // Once more, there is nothing to remove.
        try await upload.cancel(removingFromServer: true)
    }

    // A2.2
    @Test("an upload that the server has lost is begun again, once", arguments: [404, 410], [1, 2])
    func lost(status: Int, times: Int) async throws {
        var settings = TusServer.Settings()
        settings.override = { entry, number in entry.method == "PATCH" && number <= times ? .status(status) : nil }
        let server = try TusServer(settings)
        let upload = makeManager().resumableUpload(try file(100_000), to: server.url(), options: Self.options())
        if times == 1 {
            #expect(try await upload.response.uploadURL?.path == "/files/2")
            #expect(server.uploads["/files/2"].map { GeneratedBody().matches($0.bytes) && $0.bytes.count == 100_000 } == true)
        } else {
            #expect(try await kind(upload) == .gone)
            #expect(server.methods() == ["OPTIONS", "POST", "PATCH", "POST", "PATCH"])
        }
    }

    // A2.2
    @Test(
        "transient refusals are followed by another attempt, and fail typed in the end",
        arguments: [
            (409, .offsetConflict), (423, .locked), (460, .checksumMismatch), (503, .refused), (429, .refused),
        ] as [(Int, ResumableUploadError.Kind)])
    func transient(status: Int, kind: ResumableUploadError.Kind) async throws {
        var settings = TusServer.Settings()
        settings.override = { entry, number in entry.method == "PATCH" && number <= 2 ? .status(status) : nil }
        let server = try TusServer(settings)
        _ = try await makeManager().resumableUpload(try file(100_000), to: server.url(), options: Self.options()).response
        #expect(server.methods() == ["OPTIONS", "POST", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH"])
        settings.override = { entry, _ in entry.method == "PATCH" ? .status(status) : nil }
        let other = try TusServer(settings)
        #expect(try await self.kind(makeManager().resumableUpload(file(1000), to: other.url(), options: Self.options())) == kind)
        #expect(other.methods().filter { $0 == "PATCH" }.count == 5)
    }

    // A2.2
    @Test(
        "other refusals fail at once, typed, with the response's problem details",
        arguments: [
            (403, .forbidden), (412, .unsupportedVersion), (413, .tooLarge), (401, .refused), (400, .refused), (404, .refused),
        ] as [(Int, ResumableUploadError.Kind)])
    func refused(status: Int, kind: ResumableUploadError.Kind) async throws {
        var settings = TusServer.Settings()
        settings.override = { entry, _ in
            guard entry.method == "POST" else { return nil }
            var response = ServerResponse.ok("{\"title\":\"No\"}", type: "application/problem+json")
            response.status = status
            return response
        }
        let server = try TusServer(settings)
        let upload = makeManager().resumableUpload(try file(1000), to: server.url(), options: Self.options())
        let error = await #expect(throws: ResumableUploadError.self) { try await upload.response }
        #expect(error?.kind == kind)
        #expect(error?.statusCode == status)
        #expect(error?.underlyingError?.problemDetails?.title == "No")
        #expect(server.methods() == ["OPTIONS", "POST"])
        #expect(try contents(of: directory) == ["file"])
    }

    // A2.2
    @Test("a delay that the server asks for is waited for, unless it is too long or ends after the deadline", arguments: [0, 90, 30])
    func retryAfter(seconds: Int) async throws {
        var settings = TusServer.Settings()
        settings.override = { entry, number in
            entry.method == "PATCH" && number == 1 ? .status(503, headers: [ServerField("Retry-After", "\(seconds)")]) : nil
        }
        let server = try TusServer(settings)
        let waits = Log<RetryWait>()
        let options = Self.options { options in
            if seconds == 30 { options.deadline = .seconds(20) }
            options.onWait = { waits.append($0) }
        }
        let upload = makeManager().resumableUpload(try file(1000), to: server.url(), options: options)
        if seconds == 0 {
            #expect(try await upload.response.length == 1000)
        } else {
            #expect(try await kind(upload) == .refused)
        }
        #expect(waits.elements.map(\.delay) == [.seconds(seconds)])
        #expect(waits.elements.allSatisfy { $0.isWaited == (seconds == 0) && $0.failures == 1 })
        #expect(waits.elements.allSatisfy { ($0.error as? ResumableUploadError)?.statusCode == 503 })
    }

    // A2.2
    @Test("a deadline ends the upload") func deadline() async throws {
        var settings = TusServer.Settings()
        settings.override = { entry, _ in entry.method == "PATCH" ? .status(423) : nil }
        let server = try TusServer(settings)
        let options = Self.options { options in
            options.retryPolicy = RetryPolicy(retryLimit: 1_000_000, exponentialBackoffScale: 0.001, maximumDelay: 0.01)
            options.deadline = .milliseconds(200)
        }
        let start = ContinuousClock.now
        await #expect(throws: (any Error).self) {
            try await makeManager().resumableUpload(file(1000), to: server.url(), options: options).response
        }
        #expect(start.duration(to: .now) < .seconds(20))
    }
}

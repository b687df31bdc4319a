// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewUploads
import Testing

/// A2.2: on which terms an upload is begun and continued.
@Suite(.timeLimit(.minutes(2))) struct UploadTermsTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static func options(_ change: (inout ResumableUpload.Options) -> Void = { _ in }) -> ResumableUpload.Options {
        var options = ResumableUpload.Options()
        options.retryPolicy = RetryPolicy(retryLimit: 2, exponentialBackoffScale: 0.001)
        change(&options)
        return options
    }

    private func file(_ size: Int = 100_000) throws -> URL {
        try directory.write(GeneratedBody().data(count: size), to: "file")
    }

    private func expect(
        _ kind: ResumableUploadError.Kind, _ upload: ResumableUpload, location: SourceLocation = #_sourceLocation
    ) async {
        let error = await #expect(throws: ResumableUploadError.self, sourceLocation: location) { try await upload.response }
        #expect(error?.kind == kind, sourceLocation: location)
    }

    // A2.2
    @Test("an upload of another origin is refused unless it is allowed, and gets no credentials then", arguments: [false, true])
    func otherOrigin(isAllowed: Bool) async throws {
        let other = try TusServer()
        // The upload is there already.
        _ = try await makeManager().request(
            other.url(), method: .post, headers: ["Tus-Resumable": "1.0.0", "Upload-Length": "100000"]
        ).serializingData().value
        let url = other.url()
        var settings = TusServer.Settings()
        settings.location = { _ in "\(url)/1" }
        let server = try TusServer(settings)
        let options = Self.options { options in
            options.headers = ["Authorization": "Bearer secret", "X-Plain": "1"]
            options.requestOptions.interceptor = Tagging()
            options.allowsOtherOrigins = isAllowed
        }
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: options)
        #expect(server.entries.allSatisfy { $0.header("X-Tag") == "secret" })
        guard isAllowed else {
            await expect(.otherOrigin, upload)
            #expect(other.methods() == ["POST"])
            return
        }
        _ = try await upload.response
        #expect(other.methods() == ["POST", "PATCH"])
        #expect(other.entries.last?.header("Authorization") == nil)
        #expect(other.entries.last?.header("X-Tag") == nil)
        #expect(other.entries.last?.header("X-Plain") == "1")
        #expect(server.entries.allSatisfy { $0.header("Authorization") == "Bearer secret" && $0.header("X-Tag") == "secret" })
        #expect(other.uploads["/files/1"].map { GeneratedBody().matches($0.bytes) } == true)
    }

    private struct Tagging: RequestInterceptor {
        func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
            var request = urlRequest
            request.setValue("secret", forHTTPHeaderField: "X-Tag")
            return request
        }

        func should(
            _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
        ) { completion(false, 0) }
    }

    // A2.2
    @Test("user name and password of the URL are a field of each request, and not in the state") func userInfo() async throws {
        var settings = TusServer.Settings()
        settings.cuts = [50_000]
        let server = try TusServer(settings)
        let state = directory.file("state")
        var options = Self.options { options in
            options.stateFile = state
            options.retryPolicy = RetryPolicy(retryLimit: 0)
        }
        let url = server.url().replacing("http://", with: "http://user:p%40ss@")
        await #expect(throws: CurlewError.self) {
            try await makeManager().resumableUpload(file(), to: url, options: options).response
        }
        #expect(try !String(contentsOf: state, encoding: .utf8).contains("user"))
        options.retryPolicy = RetryPolicy(retryLimit: 1)
        let response = try await makeManager().resumableUpload(directory.file("file"), to: url, options: options).response
        #expect(response.resumed == 50_000)
        #expect(server.entries.allSatisfy { $0.header("Authorization") == "Basic dXNlcjpwQHNz" })
    }

    // A2.2
    @Test("a file that changes while it is uploaded fails the upload, and the next one begins again") func changed() async throws {
        let file = try file()
        var settings = TusServer.Settings()
        settings.onBytes = { count in
            guard count == 60_000 else { return }
            try? FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: file.path)
        }
        let server = try TusServer(settings)
        let options = Self.options { $0.chunkSize = 60_000 }
        await expect(.fileChanged, makeManager().resumableUpload(file, to: server.url(), options: options))
        #expect(server.methods().filter { $0 == "PATCH" }.count == 1)
        let response = try await makeManager().resumableUpload(file, to: server.url(), options: options).response
        #expect(response.resumed == 0)
        #expect(response.uploadURL?.path == "/files/2")
    }

    // A2.2
    @Test("two uploads don't share a state file") func inUse() async throws {
        let isOpen = Gate()
        var settings = TusServer.Settings()
        settings.override = { entry, _ in
            if entry.method == "PATCH" { _ = isOpen.wait() }
            return nil
        }
        let server = try TusServer(settings)
        defer { isOpen.open() }
        let file = try file()
        let first = makeManager().resumableUpload(file, to: server.url(), options: Self.options())
        first.resume()
        #expect(await eventually { server.methods().contains("PATCH") })
        await expect(.inUse, makeManager().resumableUpload(file, to: server.url(), options: Self.options()))
        isOpen.open()
        #expect(try await first.response.length == 100_000)
    }

    // A2.2
    @Test("the state of another file is neither continued nor removed, that of a file that was moved is", arguments: [true, false])
    func otherFile(isMoved: Bool) async throws {
        var settings = TusServer.Settings()
        settings.cuts = [50_000]
        let server = try TusServer(settings)
        let file = try file()
        let other = directory.file("other")
        let options = Self.options { options in
            options.stateFile = directory.file("state")
            options.retryPolicy = RetryPolicy(retryLimit: 0)
        }
        await #expect(throws: CurlewError.self) {
            try await makeManager().resumableUpload(file, to: server.url(), options: options).response
        }
        if isMoved {
            try FileManager.default.moveItem(at: file, to: other)
        } else {
            try FileManager.default.copyItem(at: file, to: other)
        }
        try await makeManager().resumableUpload(other, to: server.url(), options: options).cancel(removingFromServer: true)
        #expect(server.uploads.keys.sorted() == (isMoved ? [] : ["/files/1"]))
        guard !isMoved else { return }
        let response = try await makeManager().resumableUpload(other, to: server.url(), options: options).response
        #expect(response.resumed == 0 && response.uploadURL?.path == "/files/2")
        #expect(try await makeManager().resumableUpload(file, to: server.url(), options: options).response.resumed == 0)
    }

    // A2.2
    @Test("the upload of a file that has changed is removed after its directory was moved with the state, too")
    func movedDirectory() async throws {
        var settings = TusServer.Settings()
        settings.cuts = [50_000]
        let server = try TusServer(settings)
        let (folder, moved) = (directory.file("folder"), directory.file("moved"))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        try FileManager.default.moveItem(at: file(), to: folder.appendingPathComponent("file"))
        let options = Self.options { $0.retryPolicy = RetryPolicy(retryLimit: 0) }
        await #expect(throws: CurlewError.self) {
            try await makeManager().resumableUpload(folder.appendingPathComponent("file"), to: server.url(), options: options).response
        }
        try FileManager.default.moveItem(at: folder, to: moved)
        let later = moved.appendingPathComponent("file")
        try Data("x".utf8).write(to: later)
        try await makeManager().resumableUpload(later, to: server.url(), options: options).cancel(removingFromServer: true)
        #expect(server.uploads.isEmpty)
    }

    // A2.2
    @Test("what is no state file is not overwritten") func noState() async throws {
        let server = try TusServer()
        let other = try directory.write(Data("a letter".utf8), to: "letter")
        let options = Self.options { $0.stateFile = other }
        await #expect(throws: CocoaError.self) {
            try await makeManager().resumableUpload(file(), to: server.url(), options: options).response
        }
        #expect(try Data(contentsOf: other) == Data("a letter".utf8))
        #expect(server.entries.isEmpty)
    }

    // A2.2
    @Test("what can't be uploaded fails before anything is sent") func unusable() async throws {
        let server = try TusServer()
        await expect(
            .notAFile,
            makeManager().resumableUpload(directory.url, to: server.url(), options: Self.options { $0.stateFile = directory.file("s") }))
        await #expect(throws: CocoaError.self) {
            try await makeManager().resumableUpload(directory.file("none"), to: server.url(), options: Self.options()).response
        }
        for key in ["", "a b", "a,b", "ä"] {
            let options = Self.options { $0.metadata = [key: "value"] }
            await expect(.invalidMetadata, makeManager().resumableUpload(try file(), to: server.url(), options: options))
        }
        #expect(server.entries.isEmpty)
        #expect(try contents(of: directory) == ["file"])
    }

    // A2.2
    @Test("limits and versions of the server count before a file is sent") func limits() async throws {
        let changes: [(ResumableUploadError.Kind, (inout TusServer.Settings) -> Void)] = [
            (.tooLarge, { $0.maximum = 99_999 }), (.unsupportedVersion, { $0.version = "2.0.0" }),
            (.unsupported, { $0.extensions = "termination" }),
        ]
        for (kind, change) in changes {
            var settings = TusServer.Settings()
            change(&settings)
            let server = try TusServer(settings)
            await expect(kind, makeManager().resumableUpload(try file(), to: server.url(), options: Self.options()))
            #expect(server.methods() == ["OPTIONS"])
        }
        // A server that has no answer to OPTIONS.
        var settings = TusServer.Settings()
        settings.override = { entry, _ in entry.method == "OPTIONS" ? .status(405) : nil }
        let server = try TusServer(settings)
        #expect(try await makeManager().resumableUpload(file(), to: server.url(), options: Self.options()).response.length == 100_000)
    }

    // A2.2
    @Test("a response that contradicts the protocol is an error", arguments: ["location", "offset", "length", "stuck", "scheme"])
    func invalid(what: String) async throws {
        var settings = TusServer.Settings()
        settings.cuts = what == "offset" || what == "length" ? [1000] : []
        settings.override = { entry, _ in
            switch (what, entry.method) {
            case ("location", "POST"): .status(201)
            case ("offset", "HEAD"): .status(200, headers: [ServerField("Upload-Offset", "100001")])
            case ("length", "HEAD"):
                .status(200, headers: [ServerField("Upload-Offset", "1000"), ServerField("Upload-Length", "1000")])
            case ("stuck", "PATCH"): .status(204, headers: [ServerField("Upload-Offset", "0")])
            case ("scheme", "POST"): .status(201, headers: [ServerField("Location", "file:///etc/passwd")])
            default: nil
            }
        }
        let server = try TusServer(settings)
        await expect(.invalidResponse, makeManager().resumableUpload(try file(), to: server.url(), options: Self.options()))
        #expect(server.methods().count <= 7)
    }

    // A2.2
    @Test("a response without an offset leads to the question for it, and to the end if nothing arrives", arguments: [true, false])
    func withoutOffset(arrives: Bool) async throws {
        var settings = TusServer.Settings()
        settings.hidesOffset = true
        if !arrives { settings.override = { entry, _ in entry.method == "PATCH" ? .status(204) : nil } }
        let server = try TusServer(settings)
        let retries = Lock(0)
        let options = Self.options { options in
            options.chunkSize = 60_000
            options.deadline = .seconds(10)
            options.onWait = { _ in retries.withLock { $0 += 1 } }
        }
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: options)
        if arrives {
            #expect(try await upload.response.length == 100_000)
            #expect(server.methods() == ["OPTIONS", "POST", "PATCH", "HEAD", "PATCH", "HEAD"])
            #expect(retries.withLock { $0 } == 0)
        } else {
            await expect(.invalidResponse, upload)
            #expect(server.methods().filter { $0 == "PATCH" }.count == 3)
            #expect(retries.withLock { $0 } == 2)
        }
    }

    // A2.2
    @Test("an upload is not removed with other credentials, which is an error") func foreignRemoval() async throws {
        var settings = TusServer.Settings()
        settings.cuts = [50_000]
        let server = try TusServer(settings)
        let file = try file()
        var options = Self.options { options in
            options.retryPolicy = RetryPolicy(retryLimit: 0)
            options.headers = ["Authorization": "Bearer one"]
        }
        await #expect(throws: CurlewError.self) {
            try await makeManager().resumableUpload(file, to: server.url(), options: options).response
        }
        options.headers = ["Authorization": "Bearer two"]
        let error = await #expect(throws: ResumableUploadError.self) {
            try await makeManager().resumableUpload(file, to: server.url(), options: options).cancel(removingFromServer: true)
        }
        #expect(error?.kind == .otherCredentials)
        #expect(server.methods() == ["OPTIONS", "POST", "PATCH", "HEAD"])
        #expect(try contents(of: directory).count == 2)
    }

    // A2.2
    @Test("sequences of progress that are not read any more are forgotten") func droppedProgress() async throws {
        let server = try TusServer()
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: Self.options())
        for _ in 1...10 { for await _ in upload.progressUpdates { break } }
        let kept = upload.progressUpdates
        #expect(await eventually { upload.observerCount == 1 })
        _ = try await upload.response
        #expect(upload.observerCount == 0)
        var updates = kept.makeAsyncIterator()
        #expect(await updates.next()?.confirmed == 100_000)
        #expect(await updates.next() == nil)
    }

    // A2.2
    @Test("the state of an upload that has expired leads to a new one") func expired() async throws {
        var settings = TusServer.Settings()
        settings.cuts = [50_000]
        settings.fields = [ServerField("Upload-Expires", "Wed, 25 Jun 2014 16:00:00 GMT")]
        let server = try TusServer(settings)
        let file = try file()
        let upload = makeManager().resumableUpload(
            file, to: server.url(), options: Self.options { $0.retryPolicy = RetryPolicy(retryLimit: 0) })
        await #expect(throws: CurlewError.self) { try await upload.response }
        #expect(upload.expires == Date(timeIntervalSince1970: 1_403_712_000))
        server.forget()
        let response = try await makeManager().resumableUpload(file, to: server.url(), options: Self.options()).response
        #expect(response.resumed == 0)
        #expect(server.uploads["/files/2"].map { GeneratedBody().matches($0.bytes) } == true)
    }

    // A2.2
    @Test("progress is reported in bytes of the whole file, and ends with the upload") func progress() async throws {
        let server = try TusServer()
        let options = Self.options { $0.chunkSize = 30_000 }
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: options)
        #expect(upload.progress == ResumableUpload.Progress(completed: 0, confirmed: 0, total: 0))
        let updates = upload.progressUpdates
        async let response = upload.response
        var last: ResumableUpload.Progress?
        for await update in updates {
            #expect(update.confirmed <= update.completed)
            last = update
        }
        #expect(last == ResumableUpload.Progress(completed: 100_000, confirmed: 100_000, total: 100_000))
        #expect(try await response.sent == 100_000)
        var after = upload.progressUpdates.makeAsyncIterator()
        #expect(await after.next()?.confirmed == 100_000)
        #expect(await after.next() == nil)
        #expect(server.entries.filter { $0.method == "PATCH" }.map { $0.header("Upload-Offset") } == ["0", "30000", "60000", "90000"])
    }

    // A2.2
    @Test("cancelling the awaiting task ends the upload, also a paused one", arguments: [false, true]) func task(isPaused: Bool)
        async throws
    {
        let isOpen = Gate()
        var settings = TusServer.Settings()
        settings.override = { entry, _ in
            if entry.method == "PATCH" { _ = isOpen.wait() }
            return nil
        }
        let server = try TusServer(settings)
        defer { isOpen.open() }
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: Self.options())
        let task = Task { try await upload.response }
        #expect(await eventually { server.methods().contains("PATCH") })
        if isPaused { upload.pause() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        upload.resume()
        await #expect(throws: CurlewError.self) { try await upload.response }
    }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

@Suite(.timeLimit(.minutes(1)), .needsAttributes) struct FinishedDownloadTests {
    private static let length: Int64 = 100_000

    private let directory: TemporaryDirectory
    private let manager = makeManager()

    init() throws {
        directory = try TemporaryDirectory()
    }

    private var file: URL { directory.file("file") }

    private func download(
        _ url: String, _ options: DownloadRequest.DownloadOptions = [.resumePreviousDownload], headers: HTTPHeaders? = nil,
        by manager: SessionManager? = nil
    ) async -> (request: DownloadRequest, response: DownloadResponse<URL>) {
        let request = (manager ?? self.manager).download(url, headers: headers, to: file, options: options).validate()
        return (request, await request.serializingURL().response)
    }

    /// Downloads the file, then changes something, and downloads it again; returns the second request.
    private func downloadTwice(
        _ url: String, _ options: DownloadRequest.DownloadOptions = [.resumePreviousDownload, .removePreviousFile],
        between change: () throws -> Void = {}
    ) async throws -> (request: DownloadRequest, response: DownloadResponse<URL>) {
        #expect(await download(url, options).response.error == nil)
        try change()
        return await download(url, options)
    }

    private func expectFile(seed: UInt64 = 0, _ location: SourceLocation = #_sourceLocation) throws {
        let data = try Data(contentsOf: file)
        #expect((data == GeneratedBody(seed: seed).data(count: Int(Self.length))) == true, sourceLocation: location)
        #expect(try contents(of: directory) == ["file"], sourceLocation: location)
    }

    /// A server that sends one file with the fields, and 304 to requests with the condition.
    private func makeServer(_ fields: [ServerField], condition: (name: String, value: String)) throws -> LoopbackServer {
        try LoopbackServer { request, _ in
            if request.header(condition.name) == condition.value { return ServerResponse(status: 304, headers: fields) }
            return ServerResponse(status: 200, headers: fields, body: .generated(length: Self.length))
        }
    }

    // MARK: Known

    @Test("a finished download that is asked for again costs no body byte") func unchanged() async throws {
        let server = try LoopbackServer { request, _ in .generated(length: Self.length, for: request) }
        let first = await download(server.url("/file"))
        #expect(first.response.error == nil)
        #expect(!first.request.isFileUnchanged)
        let inode = try FileManager.default.attributesOfItem(atPath: file.path)[.systemFileNumber] as? Int
        let progress = Log<Int64>()
        let request = manager.download(
            server.url("/file"), headers: ["Accept": "application/octet-stream"], to: file, options: .resumePreviousDownload
        )
        .validate().validate { _, response, temporaryURL, destinationURL in
            response.statusCode == 200 && temporaryURL == destinationURL ? .success : .failure(TestError("\(response)"))
        }
        request.downloadProgress { if $0.isFinished { progress.append($0.completedUnitCount) } }
        let second = await request.serializingURL().response
        #expect(second.error == nil && second.value == file)
        #expect(request.isFileUnchanged)
        #expect(second.response?.statusCode == 200)
        #expect(second.response?.value(forHTTPHeaderField: "Content-Type") == "application/octet-stream")
        #expect(second.metrics.last?.responseBodyBytes == 0)
        #expect(server.requests.map { $0.header("If-None-Match") } == [nil, "\"100000-0\""])
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.systemFileNumber] as? Int == inode)
        await progress.wait(for: 1)
        #expect(progress.elements.first == Self.length)
        try expectFile()
    }

    @Test("a weak entity tag and a date are validators, too", arguments: ["weak", "date", "date and tag"])
    func validators(_ kind: String) async throws {
        let changed = "Wed, 01 Nov 2023 10:00:00 GMT"
        let dates = [ServerField("Last-Modified", changed), ServerField("Date", "Wed, 01 Nov 2023 10:00:01 GMT")]
        let tag = [ServerField("ETag", "W/\"v1\"")]
        let server =
            switch kind {
            case "weak": try makeServer(tag, condition: ("If-None-Match", "W/\"v1\""))
            case "date": try makeServer(dates, condition: ("If-Modified-Since", changed))
            default: try makeServer(tag + dates, condition: ("If-None-Match", "W/\"v1\""))
            }
        let (request, response) = try await downloadTwice(server.url("/file"))
        #expect(response.error == nil && request.isFileUnchanged)
        #expect(server.requests[1].header(kind == "date" ? "If-None-Match" : "If-Modified-Since") == nil)
        try expectFile()
    }

    @Test("a download that was resumed counts as finished, too") func resumed() async throws {
        let isCut = Lock(true)
        let server = try LoopbackServer { request, connection in
            let isFirst = isCut.withLock { isCut in
                defer { isCut = false }
                return isCut
            }
            guard isFirst else { return .generated(length: Self.length, for: request) }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(Self.length)\r\nETag: \"100000-0\"\r\n\r\n")
            try connection.send(raw: GeneratedBody(seed: 0).data(count: 60_000))
            connection.close()
            return nil
        }
        #expect(await download(server.url("/file")).response.error != nil)
        #expect(await download(server.url("/file")).response.response?.statusCode == 206)
        #expect(await download(server.url("/file")).request.isFileUnchanged)
        #expect(server.requests.map { $0.header("Range") } == [nil, "bytes=60000-", nil])
        try expectFile()
    }

    @Test("a retry asks again, and a session with a cache asks, too", arguments: [false, true]) func retried(_ hasCache: Bool) async throws
    {
        let fails = Lock(false)
        let server = try LoopbackServer { request, _ in
            let fails = fails.withLock { value in
                defer { value = false }
                return value
            }
            return fails ? .status(503) : .generated(length: Self.length, for: request)
        }
        let manager = makeManager {
            if hasCache { $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil) }
        }
        manager.retrier = Retrier.attempts(1)
        let options: DownloadRequest.DownloadOptions = [.resumePreviousDownload, .removePreviousFile]
        #expect(await download(server.url("/file"), options, by: manager).response.error == nil)
        fails.withLock { $0 = true }
        let (request, response) = await download(server.url("/file"), options, by: manager)
        #expect(response.error == nil && request.isFileUnchanged && request.retryCount == 1)
        #expect(server.requests.map { $0.header("If-None-Match") } == [nil, "\"100000-0\"", "\"100000-0\""])
        try expectFile()
    }

    // MARK: Changed

    @Test("a new version replaces the file, where that is allowed", arguments: [true, false]) func changed(_ isReplaced: Bool) async throws
    {
        let seed = Lock<UInt64>(0)
        let server = try LoopbackServer { request, _ in .generated(length: Self.length, seed: seed.withLock { $0 }, for: request) }
        let options: DownloadRequest.DownloadOptions =
            isReplaced ? [.resumePreviousDownload, .removePreviousFile] : .resumePreviousDownload
        let (request, response) = try await downloadTwice(server.url("/file"), options) { seed.withLock { $0 = 7 } }
        #expect(!request.isFileUnchanged)
        #expect((response.error as? CocoaError)?.code == (isReplaced ? nil : .fileWriteFileExists))
        try expectFile(seed: isReplaced ? 7 : 0)
        #expect(await download(server.url("/file"), options).request.isFileUnchanged == isReplaced)
    }

    @Test("the file of a refused response stays as it is") func refused() async throws {
        let server = try makeServer([ServerField("ETag", "\"v1\"")], condition: ("If-None-Match", "\"v1\""))
        #expect(await download(server.url("/file")).response.error == nil)
        let request = manager.download(server.url("/file"), to: file, options: .resumePreviousDownload)
            .validate { _, _, _, _ in .failure(TestError("refused")) }
        #expect(await request.serializingURL().response.error is TestError)
        try expectFile()
    }

    @Test("a status 416 is no success for a finished file") func unsatisfiable() async throws {
        let isFirst = Lock(true)
        let server = try LoopbackServer { request, _ in
            let isFirst = isFirst.withLock { value in
                defer { value = false }
                return value
            }
            if isFirst { return .generated(length: Self.length, for: request) }
            return ServerResponse(status: 416, headers: [ServerField("Content-Range", "bytes */\(Self.length)")])
        }
        let (request, response) = try await downloadTwice(server.url("/file"))
        #expect(response.error?.unacceptableStatus == 416)
        #expect(!request.isFileUnchanged)
        try expectFile()
    }

    // MARK: Unknown

    enum Change: CaseIterable {
        case edited, touched, replaced, unmarked, tampered, linked, otherURL, conditional, ranged
    }

    @Test("the whole is requested if the file may be another one", arguments: Change.allCases) func unknown(_ change: Change) async throws {
        let server = try LoopbackServer { request, _ in
            // A server that does not compare: the request must have no condition of the finished file.
            if request.header("If-None-Match") == "\"100000-0\"" { return .status(304) }
            return .generated(length: Self.length, for: request)
        }
        let options: DownloadRequest.DownloadOptions = [.resumePreviousDownload, .removePreviousFile]
        #expect(await download(server.url("/file"), options).response.error == nil)
        var headers: HTTPHeaders?
        switch change {
        case .edited: try Data(count: Int(Self.length)).write(to: file, options: [])
        case .touched:
            try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: file.path)
        case .replaced:
            try FileManager.default.removeItem(at: file)
            try Data(count: Int(Self.length)).write(to: file)
        case .unmarked: #expect(withDescriptor(of: file) { FileAttribute.set(Data(), of: attribute, in: $0) } == true)
        case .tampered:
            let value = try #require(withDescriptor(of: file) { FileAttribute.value(of: attribute, in: $0) } ?? nil)
            let text = String(decoding: value, as: UTF8.self).replacingOccurrences(of: #"\"100000-0\""#, with: #"\"1\r\nX-Evil: 1\""#)
            #expect(withDescriptor(of: file) { FileAttribute.set(Data(text.utf8), of: attribute, in: $0) } == true)
        case .linked:
            let other = directory.file("other")
            try FileManager.default.moveItem(at: file, to: other)
            try FileManager.default.createSymbolicLink(at: file, withDestinationURL: other)
        case .otherURL: break
        case .conditional: headers = ["If-None-Match": "\"mine\""]
        case .ranged: headers = ["Range": "bytes=0-99999"]
        }
        let (request, response) = await download(server.url(change == .otherURL ? "/other" : "/file"), options, headers: headers)
        #expect(response.error == nil)
        #expect(!request.isFileUnchanged)
        #expect(server.requests[1].header("If-None-Match") == headers?["If-None-Match"])
        #expect(server.requests[1].header("X-Evil") == nil)
        if change == .linked { try FileManager.default.removeItem(at: directory.file("other")) }
        try expectFile()
    }

    @Test("a file that is edited while the server is asked is loaded again") func editedMeanwhile() async throws {
        let path = file.path
        let server = try LoopbackServer { request, _ in
            guard request.header("If-None-Match") != nil else { return .generated(length: Self.length, for: request) }
            _ = FileManager.default.createFile(atPath: path, contents: Data("edited".utf8))
            return .status(304)
        }
        let (request, response) = try await downloadTwice(server.url("/file"))
        #expect(response.error == nil && !request.isFileUnchanged)
        #expect(server.requests.map { $0.header("If-None-Match") } == [nil, "\"100000-0\"", nil])
        try expectFile()
    }

    @Test("a 304 about another version, or of another URL after a redirect, is not believed", arguments: [true, false])
    func otherVersion(_ isRedirected: Bool) async throws {
        let target = Lock("/one")
        let server = try LoopbackServer { request, _ in
            if isRedirected, request.path == "/file" { return .redirect(to: target.withLock { $0 }, status: 302) }
            guard request.header("If-None-Match") != nil else { return .generated(length: Self.length, for: request) }
            return ServerResponse(status: 304, headers: isRedirected ? [] : [ServerField("ETag", "\"other\"")])
        }
        let (request, response) = try await downloadTwice(server.url("/file")) { target.withLock { $0 = "/two" } }
        #expect(response.error == nil && !request.isFileUnchanged)
        try expectFile()
        guard isRedirected else { return }
        // The same way again is known.
        #expect(await download(server.url("/file")).request.isFileUnchanged)
    }

    @Test("a signed URL, whose query changes, is known by its entity tag", arguments: [true, false])
    func signed(_ hasTag: Bool) async throws {
        let signature = Lock("1")
        let server = try LoopbackServer { request, _ in
            if request.path == "/file" { return .redirect(to: "/stored?signature=\(signature.withLock { $0 })", status: 302) }
            if request.header("If-None-Match") != nil, !hasTag { return .status(304) }
            return .generated(length: Self.length, for: request)
        }
        let (request, response) = try await downloadTwice(server.url("/file")) { signature.withLock { $0 = "2" } }
        #expect(response.error == nil && request.isFileUnchanged == hasTag)
        try expectFile()
    }

    @Test("without the option no attribute is set, and none is used") func withoutOption() async throws {
        let server = try makeServer([ServerField("ETag", "\"v1\"")], condition: ("If-None-Match", "\"v1\""))
        #expect(await download(server.url("/file"), []).response.error == nil)
        #expect(withDescriptor(of: file) { FileAttribute.value(of: attribute, in: $0) == nil } == true)
        #expect(await download(server.url("/file"), [.removePreviousFile, .resumePreviousDownload]).request.isFileUnchanged == false)
        #expect(await download(server.url("/file"), .removePreviousFile).request.isFileUnchanged == false)
        #expect(server.requests.allSatisfy { $0.header("If-None-Match") == nil })
    }

    @Test("the attribute shows no URL, which may have secrets") func secrets() async throws {
        let server = try makeServer([ServerField("ETag", "\"v1\"")], condition: ("If-None-Match", "\"v1\""))
        #expect(await download(server.url("/file?token=s3cret")).response.error == nil)
        let value = try #require(withDescriptor(of: file) { FileAttribute.value(of: attribute, in: $0) } ?? nil)
        #expect(!String(decoding: value, as: UTF8.self).contains("s3cret"))
        #expect(await download(server.url("/file?token=s3cret")).request.isFileUnchanged)
    }
}

private let attribute = "user.curlew.validator"

private func withDescriptor<Value>(of file: URL, _ body: (Int32) -> Value) -> Value? {
    let descriptor = open(file.path, O_RDWR)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return body(descriptor)
}

extension Trait where Self == ConditionTrait {
    fileprivate static var needsAttributes: Self {
        .enabled("needs a file system with extended attributes") {
            guard let directory = try? TemporaryDirectory(), let file = try? directory.write(Data(), to: "file") else { return false }
            return withDescriptor(of: file) { FileAttribute.set(Data([1]), of: attribute, in: $0) } == true
        }
    }
}

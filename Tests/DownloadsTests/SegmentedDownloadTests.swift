// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewDownloads
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct SegmentedDownloadTests {
    static let size: Int64 = 1 << 20
    private let manager = makeManager()
    private let directory: TemporaryDirectory
    private var file: URL { directory.file("file") }

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func options(_ change: (inout SegmentedDownload.Options) -> Void = { _ in }) -> SegmentedDownload.Options {
        var options = SegmentedDownload.Options()
        options.minimumSegmentSize = 64 << 10
        options.retryLimit = 2
        change(&options)
        return options
    }

    private func makeServer(_ route: @escaping LoopbackServer.Route = { request, _ in .generated(length: size, for: request) }) throws
        -> LoopbackServer
    {
        try LoopbackServer(route: route)
    }

    private func download(_ server: LoopbackServer, _ change: (inout SegmentedDownload.Options) -> Void = { _ in }) async throws
        -> SegmentedDownload.Result
    {
        try await manager.segmentedDownload(server.url("/file"), to: file, options: options(change)).run()
    }

    private func isComplete(seed: UInt64 = 0, size: Int64 = size) throws -> Bool {
        let data = try Data(readingFrom: file)
        return Int64(data.count) == size && GeneratedBody(seed: seed).matches(data)
    }

    private static func lowerBound(_ request: ServerRequest) -> Int64 {
        request.header("Range").flatMap { $0.dropFirst("bytes=".count).split(separator: "-").first }.flatMap { Int64($0) } ?? 0
    }

    /// Whether a record has all of the first segment, which it has in several lines if that has come slowly.
    private func hasFirstSegment(_ record: URL) -> Bool {
        guard let text = try? String(contentsOf: record, encoding: .utf8) else { return false }
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("+ ") }
        return lines.compactMap { $0.split(separator: " ").last.flatMap { Int64($0) } }.max() == 65_536
    }

    // Not a Data, whose bytes in a global seem lost to the address sanitizer when the program ends.
    private static let digest = Array(SHA256.digest(of: GeneratedBody().data(count: Int(size))))
    private static var sha256: Data { Data(digest) }

    // MARK: A good server

    @Test("a file arrives over several connections, each byte once") func complete() async throws {
        let server = try makeServer()
        let last = Lock<SegmentedDownload.Progress?>(nil)
        let result = try await manager.segmentedDownload(server.url("/file"), to: file, options: options()).run { progress in
            last.withLock { $0 = progress }
        }
        #expect(try isComplete())
        #expect(result.length == Self.size && result.received == Self.size && result.resumed == 0 && !result.isUnchanged)
        #expect(server.requestCount > 4)
        #expect(server.requests.dropFirst().allSatisfy { $0.header("If-Range") != nil })
        #expect(last.withLock { $0 } == .init(completed: Self.size, total: Self.size, connections: 0))
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("a finished file is not received again unless it has changed") func unchanged() async throws {
        let seed = Lock<UInt64>(0)
        let server = try makeServer { request, _ in .generated(length: Self.size, seed: seed.withLock { $0 }, for: request) }
        _ = try await download(server)
        let count = server.requestCount
        let again = try await download(server)
        #expect(again.isUnchanged && again.received == 0 && again.length == Self.size)
        #expect(server.requestCount == count + 1)
        #expect(server.requests.last?.header("If-None-Match") != nil)
        seed.withLock { $0 = 1 }
        await #expect(throws: CocoaError.self) { _ = try await download(server) }
        #expect(try isComplete())
        let replaced = try await download(server) { $0.replacesFile = true }
        #expect(!replaced.isUnchanged)
        #expect(try isComplete(seed: 1))
    }

    @Test("a file with the given digest is not requested at all") func known() async throws {
        let server = try makeServer()
        try directory.write(GeneratedBody().data(count: Int(Self.size)), to: "file")
        let result = try await download(server) { $0.sha256 = Self.sha256 }
        #expect(result.isUnchanged && result.verified == ["sha-256"])
        #expect(server.requestCount == 0)
    }

    @Test("another file at the destination stays unless it may be replaced") func existing() async throws {
        let server = try makeServer()
        try directory.write(Data("mine".utf8), to: "file")
        let error = await #expect(throws: CocoaError.self) { _ = try await download(server) }
        #expect(error?.code == .fileWriteFileExists)
        #expect(server.requestCount == 0)
        _ = try await download(server) { $0.replacesFile = true }
        #expect(try isComplete())
    }

    @Test("an empty file, and one shorter than a segment", arguments: [0, 1, 1000]) func small(_ size: Int64) async throws {
        let server = try makeServer { request, _ in .generated(length: size, for: request) }
        let result = try await download(server)
        #expect(result.length == size)
        #expect(try isComplete(size: size))
        #expect(try contents(of: directory) == ["file"])
    }

    // MARK: Servers that are not

    /// What a server may do to ranges.
    enum Lie: String, CaseIterable {
        case noRanges, noRangesNorLength, noValidator, weakTag, wholeForLater, otherRange, otherTotal, otherTag, otherTagLater, noTagLater,
            longer,
            shorter
        case multipart, coded, statusForLater, lostLater, busyLater, unsatisfiable
    }

    @Test("the file is complete and of one version, whatever becomes of ranges", arguments: Lie.allCases) func lies(_ lie: Lie) async throws
    {
        let server = try makeServer { request, connection in try Self.respond(request, connection, lie) }
        let result = try await download(server)
        #expect(result.length == Self.size)
        #expect(try isComplete())
        #expect(try contents(of: directory) == ["file"])
    }

    private static func respond(_ request: ServerRequest, _ connection: ServerConnection, _ lie: Lie) throws -> ServerResponse? {
        var response = ServerResponse.generated(length: size, for: request)
        let isRanged = response.status == 206
        let isLater = isRanged && lowerBound(request) >= 300_000
        func set(_ name: String, _ value: String?) {
            response.headers.removeAll { $0.isNamed(name) }
            if let value { response.headers.append(ServerField(name, value)) }
        }
        let whole = ServerResponse(
            status: 200, headers: [ServerField("ETag", "\"\(size)-0\"")], body: .generated(length: size, seed: 0))
        switch lie {
        case .noRanges: return whole
        case .noRangesNorLength:
            connection.keepAlive = false
            try connection.send(raw: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(count: Int(size)))
            return nil
        case .noValidator: set("ETag", nil)
        case .weakTag: set("ETag", "W/\"1\"")
        case .wholeForLater: if isLater { return whole }
        case .otherRange: if isLater { set("Content-Range", "bytes 0-9/\(size)") }
        case .otherTotal: if isLater { set("Content-Range", "bytes \(lowerBound(request))-\(size - 1)/\(size + 1)") }
        case .otherTag: if isRanged { set("ETag", "\"\(request.connection)-\(request.sequence)\"") }
        case .otherTagLater: if isLater { set("ETag", "\"v2\"") }
        // Another version, from a server that ignores If-Range.
        case .noTagLater:
            guard isLater, case .generated(let length, _, let offset) = response.body else { break }
            response.body = .generated(length: length, seed: 1, offset: offset)
            set("ETag", nil)
        case .longer, .shorter:
            guard isLater, case .generated(let length, _, let offset) = response.body else { break }
            let body = GeneratedBody().data(offset: offset, count: Int(length) + (lie == .longer ? 10 : -10))
            let range = response.headers.first { $0.isNamed("Content-Range") }?.value ?? ""
            connection.keepAlive = false
            try connection.send(raw: "HTTP/1.1 206 \r\nContent-Range: \(range)\r\nETag: \"\(size)-0\"\r\nConnection: close\r\n\r\n")
            try connection.send(raw: body)
            return nil
        case .multipart:
            if isRanged {
                set("Content-Range", nil)
                set("Content-Type", "multipart/byteranges; boundary=x")
            }
        case .coded: if isLater { set("Content-Encoding", "x-unknown") }
        case .statusForLater: if isLater, request.sequence.isMultiple(of: 2) { return .status(403) }
        case .lostLater:
            guard isLater, request.sequence.isMultiple(of: 2), case .generated(let length, _, let offset) = response.body else { break }
            let lines = response.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
            try connection.send(raw: "HTTP/1.1 206 \r\n\(lines)Content-Length: \(length)\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(offset: offset, count: Int(length / 2)))
            connection.cut()
            return nil
        case .busyLater: if isLater, request.sequence.isMultiple(of: 2) { return .status(503, headers: [ServerField("Retry-After", "0")]) }
        case .unsatisfiable: if isRanged { return .status(416, headers: [ServerField("Content-Range", "bytes */\(size)")]) }
        }
        return response
    }

    @Test("a version that changes once is received from the start") func changesOnce() async throws {
        let requests = Lock(0)
        let server = try makeServer { request, _ in
            let number = requests.withLock { count in
                count += 1
                return count
            }
            return .generated(length: Self.size, seed: number > 3 ? 1 : 0, for: request)
        }
        _ = try await download(server)
        #expect(try isComplete(seed: 1))
    }

    @Test("a status is an error, and nothing is left", arguments: [404, 500]) func status(_ status: Int) async throws {
        let server = try makeServer { _, _ in .status(status, headers: [ServerField("Retry-After", "0")]) }
        let error = await #expect(throws: CurlewError.self) { _ = try await download(server) }
        guard case .responseValidationFailed(.unacceptableStatusCode(status), _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(server.requestCount == (status == 404 ? 1 : 3))
        #expect(try contents(of: directory) == [])
    }

    @Test("a connection that hangs gives its segment to an idle one") func stalled() async throws {
        let isOpen = Gate()
        let server = try makeServer { request, connection in
            let response = ServerResponse.generated(length: Self.size, for: request)
            guard Self.lowerBound(request) >= 64 << 10, isOpen.arrived == 0 else { return response }
            isOpen.arrive()
            connection.waitUntilClosed()
            return nil
        }
        let result = try await download(server) { $0.stallTimeout = .milliseconds(300) }
        #expect(result.received == Self.size)
        #expect(try isComplete())
    }

    @Test("a server that refuses a third connection is left with two") func refusal() async throws {
        let active = Lock(0)
        let server = try makeServer { request, connection in
            let number = active.withLock { count in
                count += 1
                return count
            }
            defer { active.withLock { $0 -= 1 } }
            guard number <= 2 else { return .status(503) }
            guard case .generated(let length, _, let offset) = ServerResponse.generated(length: Self.size, for: request).body else {
                return nil
            }
            let head = "HTTP/1.1 206 \r\nETag: \"\(Self.size)-0\"\r\nContent-Length: \(length)\r\n"
            try connection.send(raw: "\(head)Content-Range: bytes \(offset)-\(offset + length - 1)/\(Self.size)\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(offset: offset, count: Int(length)))
            return nil
        }
        let result = try await download(server) { $0.segments = 6 }
        #expect(result.received == Self.size)
        #expect(try isComplete())
    }

    // MARK: Digests

    @Test("a wrong digest is an error, and the file never gets its name") func wrongDigest() async throws {
        let server = try makeServer()
        let wrong = Data(repeating: 1, count: 32)
        await #expect(throws: SegmentedDownloadError.digestMismatch(algorithm: "sha-256", expected: wrong, actual: Self.sha256)) {
            _ = try await download(server) { $0.sha256 = wrong }
        }
        #expect(try contents(of: directory) == [])
    }

    @Test("the server's digests are verified (RFC 9530)", arguments: [true, false]) func reprDigest(_ isRight: Bool) async throws {
        let value = "sha-256=:\((isRight ? Self.sha256 : Data(count: 32)).base64EncodedString()):"
        let server = try makeServer { request, _ in
            var response = ServerResponse.generated(length: Self.size, for: request)
            response.headers.append(ServerField("Repr-Digest", value))
            return response
        }
        if isRight {
            #expect(try await download(server).verified == ["sha-256"])
        } else {
            await #expect(throws: SegmentedDownloadError.self) { _ = try await download(server) }
            #expect(try contents(of: directory) == [])
            let ignored = try await download(server) { $0.verifiesDigests = false }
            #expect(ignored.verified == [])
        }
    }

    @Test("a segment whose own digest is wrong is received again") func contentDigest() async throws {
        let isFirst = Lock(true)
        let server = try makeServer { request, _ in
            var response = ServerResponse.generated(length: Self.size, for: request)
            guard case .generated(let length, _, let offset) = response.body else { return response }
            let isWrong = isFirst.withLock { first in
                defer { if offset > 0 { first = false } }
                return first && offset > 0
            }
            let bytes = GeneratedBody(seed: isWrong ? 9 : 0).data(offset: offset, count: Int(length))
            let right = GeneratedBody().data(offset: offset, count: Int(length))
            response.body = .data(bytes)
            response.headers.append(ServerField("Content-Digest", "sha-256=:\(Data(SHA256.digest(of: right)).base64EncodedString()):"))
            return response
        }
        let result = try await download(server)
        #expect(try isComplete())
        #expect(result.received > Self.size)
    }

    @Test("a segment that loses a part before its response is not compared with the digest of all of it") func digestOfMore() async throws {
        let isTaken = Gate()
        let server = try makeServer { request, connection in
            var response = ServerResponse.generated(length: Self.size, for: request)
            guard case .generated(let length, _, let offset) = response.body else { return response }
            // The second segment, of 240 KiB, gets its response when the other connection has taken half of it.
            if offset == 64 << 10 { connection.wait(until: isTaken) }
            if offset > 64 << 10, offset < 304 << 10 { isTaken.open() }
            let bytes = GeneratedBody().data(offset: offset, count: Int(length))
            response.headers.append(ServerField("Content-Digest", "sha-256=:\(Data(SHA256.digest(of: bytes)).base64EncodedString()):"))
            return response
        }
        _ = try await download(server) { $0.segments = 2 }
        #expect(isTaken.isOpen)
        #expect(try isComplete())
        #expect(server.requests.filter { Self.lowerBound($0) == 64 << 10 }.count == 1)
    }

    // MARK: Mirrors

    @Test("a mirror takes over where the server fails") func fallBack() async throws {
        let broken = try makeServer { _, _ in .status(404) }
        let mirror = try makeServer()
        _ = try await manager.segmentedDownload(broken.url("/file"), mirrors: [mirror.url("/m")], to: file, options: options()).run()
        #expect(try isComplete())
        #expect(broken.requestCount == 1)
    }

    @Test("mirrors of other origins get no credentials, unless they are to", arguments: [true, false])
    func credentialsOfMirrors(_ areSent: Bool) async throws {
        let broken = try makeServer { _, _ in .status(404) }
        let mirror = try makeServer()
        let names = ["Authorization", "Cookie", "X-Api-Key", "DD-API-KEY"]
        let options = options {
            $0.sendsCredentialsToMirrors = areSent
            $0.headers = ["X-Other": "plain"]
            for name in names { $0.headers.append(name: name, value: "a=s3cret") }
        }
        _ = try await manager.segmentedDownload(broken.url("/file"), mirrors: [mirror.url("/m")], to: file, options: options).run()
        #expect(broken.requestCount > 0 && mirror.requestCount > 0)
        for request in broken.requests { #expect(names.allSatisfy { request.header($0) == "a=s3cret" }) }
        for request in mirror.requests {
            #expect(names.allSatisfy { request.header($0) == (areSent ? "a=s3cret" : nil) } && request.header("X-Other") == "plain")
        }
    }

    @Test("mirrors with the same validator share the work, others are not mixed", arguments: [true, false])
    func mirrors(_ isSame: Bool) async throws {
        let server = try makeServer()
        let mirror = try makeServer { request, _ in
            .generated(length: Self.size, seed: isSame ? 0 : 7, for: request)
        }
        _ = try await manager.segmentedDownload(server.url("/file"), mirrors: [mirror.url("/m")], to: file, options: options()).run()
        #expect(try isComplete())
        #expect(isSame ? mirror.requestCount > 1 : mirror.requestCount <= 3)
    }

    @Test("another version of a mirror replaces the whole once the server has gone") func otherMirror() async throws {
        let server = try makeServer { request, _ in
            Self.lowerBound(request) == 0 ? .generated(length: Self.size, for: request) : .status(410)
        }
        let mirror = try makeServer { request, _ in .generated(length: Self.size, seed: 7, for: request) }
        _ = try await manager.segmentedDownload(server.url("/file"), mirrors: [mirror.url("/m")], to: file, options: options()).run()
        #expect(try isComplete(seed: 7))
    }

    // MARK: Limits, cancellation, files

    @Test("a rate limit bounds all connections together") func rateLimit() async throws {
        let server = try makeServer()
        let start = ContinuousClock.now
        _ = try await download(server) { $0.rateLimit = DownloadRateLimit(bytesPerSecond: Self.size) }
        // A quarter of a second's bytes come at once.
        #expect(ContinuousClock.now - start >= .milliseconds(700))
        #expect(try isComplete())
    }

    @Test("a cancelled download is resumed with what it has, and two at once are refused") func cancelled() async throws {
        let isOpen = Gate()
        let server = try makeServer { request, connection in
            let response = ServerResponse.generated(length: Self.size, for: request)
            guard Self.lowerBound(request) >= 64 << 10, !isOpen.isOpen else { return response }
            connection.waitUntilClosed()
            return nil
        }
        let record = directory.file(".file.segments.state")
        let first = Task { try await download(server) }
        #expect(await eventually { hasFirstSegment(record) })
        for file in [record, record.deletingPathExtension()] {
            #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
        }
        await #expect(throws: SegmentedDownloadError.inUse(directory.file(".file.segments"))) { _ = try await download(server) }
        first.cancel()
        await #expect(throws: CancellationError.self) { _ = try await first.value }
        isOpen.open()
        let result = try await download(server)
        #expect(result.resumed == 64 << 10 && result.received == Self.size - 64 << 10)
        #expect(try isComplete())
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("what another user has begun is continued only by its strong entity tag", arguments: ["date", "tag", "same user"])
    func otherUser(_ kind: String) async throws {
        let isOpen = Gate()
        let server = try makeServer { request, connection in
            let seed: UInt64 = kind != "date" || request.header("Authorization") == "a" ? 0 : 3
            let tag = kind == "tag" ? "\"v1\"" : request.header("If-Range") ?? "\"none\""
            var response = ServerResponse.generated(length: Self.size, seed: seed, etag: tag, for: request)
            if kind != "tag" {
                response.headers.removeAll { $0.isNamed("ETag") }
                response.headers.append(ServerField("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"))
                response.headers.append(ServerField("Date", "Mon, 07 Nov 1994 08:49:37 GMT"))
            }
            guard Self.lowerBound(request) >= 64 << 10, !isOpen.isOpen else { return response }
            connection.waitUntilClosed()
            return nil
        }
        let record = directory.file(".file.segments.state")
        let first = Task { try await download(server) { $0.headers = ["Authorization": "a"] } }
        #expect(await eventually { hasFirstSegment(record) })
        first.cancel()
        await #expect(throws: CancellationError.self) { _ = try await first.value }
        isOpen.open()
        let result = try await download(server) { $0.headers = ["Authorization": kind == "same user" ? "a" : "b"] }
        #expect(result.resumed == (kind == "date" ? 0 : 64 << 10))
        #expect(try isComplete(seed: kind == "date" ? 3 : 0))
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("a file that was complete without its name costs one byte, or is received again", arguments: [true, false])
    func completeWithoutName(isSame: Bool) async throws {
        let server = try makeServer { request, _ in .generated(length: Self.size, seed: isSame ? 0 : 3, for: request) }
        _ = try await download(server)
        try FileManager.default.removeItem(at: file)
        try GeneratedBody().data(count: Int(Self.size)).write(to: directory.file(".file.segments"))
        let source = SHA256.digest(of: server.url("/file").utf8).hexDigits
        let record = """
            {"format":1,"source":"\(source)","system":null,"version":{"digests":{},"tag":"\\"\(Self.size)-0\\"","total":\(Self.size)}}
            + 0 \(Self.size)
            =

            """
        try Data(record.utf8).write(to: directory.file(".file.segments.state"))
        let result = try await download(server)
        #expect(result.received == (isSame ? 1 : Self.size), "\(result)")
        #expect(try isComplete(seed: isSame ? 0 : 3))
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("what was left of another version is not used") func otherVersionLeft() async throws {
        try await cancelled()
        let data = try Data(contentsOf: file)
        try data.write(to: directory.file(".file.segments"))
        let record = """
            {"format":1,"source":"x","system":null,"version":{"digests":{},"tag":"\\"old\\"","total":\(Self.size)}}
            + 0 \(Self.size - 10)
            =

            """
        try Data(record.utf8).write(to: directory.file(".file.segments.state"))
        let server = try makeServer { request, _ in .generated(length: Self.size, seed: 3, for: request) }
        _ = try await download(server) { $0.replacesFile = true }
        #expect(try isComplete(seed: 3))
    }

    @Test("a record that was damaged is not used", arguments: ["", "{}", "+ 0 10\n", "{\"format\":1}\n+ 9 1\n=\n"])
    func damagedRecord(_ text: String) async throws {
        try directory.write(Data(count: 100), to: ".file.segments")
        try directory.write(Data(text.utf8), to: ".file.segments.state")
        let result = try await download(try makeServer())
        #expect(result.resumed == 0)
        #expect(try isComplete())
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("a directory that does not exist is an error with its path") func noDirectory() async throws {
        let server = try makeServer()
        let target = directory.file("none/file")
        let error = await #expect(throws: CocoaError.self) {
            _ = try await manager.segmentedDownload(server.url("/file"), to: target).run()
        }
        #expect((error?.userInfo["NSFilePath"] as? String)?.hasSuffix("/none") == true)
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct HTTPResumeTests {
    /// Pauses an operation once half of the body has arrived, and resumes it.
    private func pauseAtHalf(_ operation: URLConnectionOperation) async {
        await operation.received(HalfServer.half - 1)
        operation.pause()
        operation.resume()
    }

    @Test("a paused operation resumes where it stopped, and counts the complete body", arguments: [false, true])
    func partial(toFile: Bool) async throws {
        let server = try HalfServer()
        let directory = try TemporaryDirectory()
        let operation = try HTTPRequestOperation.make(server.url)
        if toFile { operation.outputFile = directory.file("body") }
        operation.start()
        await operation.received(HalfServer.half - 1)
        operation.pause()
        let progress = Log<[Int64]>()
        operation.setDownloadProgressBlock { progress.append([$1, $2]) }
        operation.resume()
        let body = try await operation.value
        #expect(try (toFile ? Data(contentsOf: directory.file("body")) : body) == HalfServer.body)
        #expect(operation.responseData == (toFile ? nil : HalfServer.body))
        #expect(operation.response?.statusCode == 200 && operation.response?.value(forHTTPHeaderField: "Content-Range") == nil)
        if toFile { #expect(try contents(of: directory) == ["body"]) }
        let second = try #require(server.requests.last)
        #expect(second.header("Range") == "bytes=\(HalfServer.half)-")
        #expect(second.header("If-Range") == "\"\(HalfServer.length)-0\"")
        callbackQueue.sync {}
        #expect(progress.elements.last == [HalfServer.length, HalfServer.length])
        #expect(progress.elements.allSatisfy { $0[0] > HalfServer.half })
    }

    /// Notes the status of each response.
    private final class Observer: HTTPRequestOperation, @unchecked Sendable {  // the log is locked
        let statuses = Log<Int>()

        override func connection(didReceive response: HTTPURLResponse) {
            super.connection(didReceive: response)
            statuses.append(response.statusCode)
        }
    }

    @Test("the response is the first one, whose fields the second may omit, and validation applies to it")
    func responseOfTheFirst() async throws {
        let fields = [ServerField("ETag", "\"1\""), ServerField("Content-Type", "image/bmp; charset=utf-16")]
        let server = try HalfServer(headers: fields) { _ in Self.rest([ServerField("ETag", "\"1\"")]) }
        let operation = try Observer.make(server.url)
        operation.responseSerializer.acceptance = ResponseAcceptance(contentTypes: ["image/bmp"])
        operation.start()
        await pauseAtHalf(operation)
        #expect(try await operation.value == HalfServer.body)
        #expect(operation.response?.statusCode == 200 && operation.responseStringEncoding == .utf16)
        #expect(operation.statuses.elements == [200, 206])
    }

    /// The second half, with header fields.
    private static func rest(_ fields: [ServerField]) -> ServerResponse {
        let offset = HalfServer.half
        let range = ServerField("Content-Range", "bytes \(offset)-\(HalfServer.length - 1)/\(HalfServer.length)")
        return ServerResponse(status: 206, headers: [range] + fields, body: .generated(length: HalfServer.length - offset, offset: offset))
    }

    @Test("next to a weak tag the date is the validator; with another tag or date the whole body is requested", arguments: ["1", "2", nil])
    func weakTag(second: String?) async throws {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT"
        let fields = [
            ServerField("ETag", "W/\"1\""), ServerField("Last-Modified", date), ServerField("Date", "Wed, 21 Oct 2015 08:28:00 GMT"),
        ]
        let server = try HalfServer(headers: fields) { _ in
            let field = second.map { ServerField("ETag", "W/\"\($0)\"") }
            let changed = second == nil ? "Thu, 22 Oct 2015 07:28:00 GMT" : date
            return Self.rest([field, ServerField("Last-Modified", changed)].compactMap { $0 })
        }
        let operation = try HTTPRequestOperation.make(server.url)
        operation.start()
        await pauseAtHalf(operation)
        #expect(try await operation.value == HalfServer.body)
        let range = "bytes=\(HalfServer.half)-"
        #expect(server.requests.map { $0.header("If-Range") } == (second == "1" ? [nil, date] : [nil, date, nil]))
        #expect(server.requests.map { $0.header("Range") } == (second == "1" ? [nil, range] : [nil, range, nil]))
    }

    @Test("a response with only a date resumes from it; a weak tag is not a validator")
    func validators() async throws {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT"
        let fields = [ServerField("Last-Modified", date), ServerField("Date", "Wed, 21 Oct 2015 08:28:00 GMT")]
        let dated = try HalfServer(headers: fields) { _ in
            Self.rest([ServerField("Last-Modified", date)])
        }
        let operation = try HTTPRequestOperation.make(dated.url)
        operation.start()
        await pauseAtHalf(operation)
        #expect(try await operation.value == HalfServer.body)
        #expect(dated.requests.last?.header("If-Range") == date)

        let weak = try HalfServer(headers: [ServerField("ETag", "W/\"1\"")])
        let restarted = try HTTPRequestOperation.make(weak.url)
        restarted.start()
        await pauseAtHalf(restarted)
        #expect(try await restarted.value == HalfServer.body)
        #expect(weak.requests.last?.header("Range") == nil)
    }

    struct SecondResponse: Sendable, CustomStringConvertible {
        let description: String
        let requests: Int
        let status: Int
        let respond: @Sendable (ServerRequest) -> ServerResponse
    }

    static let secondResponses = [
        SecondResponse(description: "200: the whole body replaces the part", requests: 2, status: 200) { _ in
            ServerResponse(status: 200, body: .generated(length: HalfServer.length))
        },
        SecondResponse(description: "206 of another range: the whole body is requested", requests: 3, status: 200) { _ in
            let range = "bytes 100-\(HalfServer.length - 1)/\(HalfServer.length)"
            return ServerResponse(
                status: 206, headers: [ServerField("Content-Range", range)], body: .generated(length: HalfServer.length - 100, offset: 100))
        },
        SecondResponse(description: "206 without Content-Range: the whole body is requested", requests: 3, status: 200) { _ in
            ServerResponse(status: 206, body: .data(Data("?".utf8)))
        },
        SecondResponse(description: "416 of another length: the whole body is requested", requests: 3, status: 200) { _ in
            .status(416, headers: [ServerField("Content-Range", "bytes */7")])
        },
    ]

    @Test("only a matching range is appended", arguments: secondResponses)
    func mismatches(_ second: SecondResponse) async throws {
        let server = try HalfServer(answer: second.respond)
        let operation = try HTTPRequestOperation.make(server.url)
        operation.start()
        await pauseAtHalf(operation)
        #expect(try await operation.value == HalfServer.body)
        #expect(operation.totalBytesRead == HalfServer.length)
        #expect(server.requests.count == second.requests)
        #expect(operation.response?.statusCode == second.status)
    }

    @Test("416 at the full length completes the body; the response is the one that sent it")
    func complete() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            if request.header("Range") != nil { return .generated(length: 5, for: request) }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nETag: \"5-0\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n")
            try connection.send(raw: GeneratedBody().data(count: 5))
            connection.wait(until: gate)
            return nil
        }
        let operation = try HTTPRequestOperation.make(server.url("/"))
        operation.start()
        await operation.received(4)
        operation.pause()
        operation.resume()
        #expect(try await operation.value == GeneratedBody().data(count: 5))
        #expect(operation.response?.statusCode == 200 && operation.error == nil)
        #expect(server.requests.last?.header("Range") == "bytes=5-")
        gate.open()
    }

    @Test("an error in place of the rest becomes the response, and leaves the existing file alone")
    func errorInPlaceOfTheRest() async throws {
        let server = try HalfServer { _ in ServerResponse(status: 503, body: .data(Data("Later".utf8))) }
        let directory = try TemporaryDirectory()
        let operation = try HTTPRequestOperation.make(server.url)
        operation.outputFile = try directory.write(Data("before".utf8), to: "body")
        operation.start()
        await pauseAtHalf(operation)
        await operation.waitForEnd()
        #expect(operation.response?.statusCode == 503)
        #expect(operation.responseData == Data("Later".utf8))
        #expect(operation.urlErrorCode == .badServerResponse)
        #expect(try Data(contentsOf: directory.file("body")) == Data("before".utf8))
        #expect(try contents(of: directory) == ["body"])
    }

    @Test(
        "an operation paused in an error in place of the rest resumes the part, whose response is the first one", arguments: [false, true])
    func pausedInTheError(toFile: Bool) async throws {
        let count = Lock(0)
        let server = try LoopbackServer { request, connection in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 {
                let length = HalfServer.length
                try connection.send(raw: "HTTP/1.1 200 OK\r\nETag: \"\(length)-0\"\r\nContent-Length: \(length)\r\n\r\n")
                try connection.send(raw: GeneratedBody().data(count: Int(HalfServer.half)))
            } else if number == 2 {
                try connection.send(raw: "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 100\r\n\r\n")
            } else {
                return .generated(length: HalfServer.length, for: request)
            }
            connection.waitUntilClosed()
            return nil
        }
        let directory = try TemporaryDirectory()
        let operation = try Observer.make(server.url("/"))
        if toFile { operation.outputFile = directory.file("body") }
        operation.start()
        await pauseAtHalf(operation)
        await operation.statuses.wait(for: 2)
        // Also waits until the operation has stopped.
        let archive = operation.archive()
        #expect(operation.response?.statusCode == 200)
        #expect(try HTTPRequestOperation(archive: archive).response?.statusCode == 200)
        operation.resume()
        let body = try await operation.value
        #expect(try (toFile ? Data(contentsOf: directory.file("body")) : body) == HalfServer.body)
        #expect(operation.response?.statusCode == 200 && operation.statuses.elements == [200, 503, 206])
        #expect(server.requests.last?.header("Range") == "bytes=\(HalfServer.half)-")
    }

    @Test("an existing file is kept until it is replaced: an error response leaves it unchanged", arguments: [404, 200])
    func contentsBefore(status: Int) async throws {
        let server = try LoopbackServer { _, _ in ServerResponse(status: status, body: .data(Data())) }
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("before".utf8), to: "body")
        let operation = try HTTPRequestOperation.make(server.url("/"))
        operation.outputFile = file
        await operation.runToEnd()
        #expect(operation.response?.statusCode == status)
        let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? NSNumber
        #expect(size?.intValue == (status == 200 ? 0 : 6))
    }

    @Test("a body that replaced the part is resumed by its own version, or not at all")
    func versionOfTheWhole() async throws {
        let gate = Gate()
        let tags = Lock(["\"1\"", "W/\"2\""])
        let server = try LoopbackServer { request, connection in
            if request.header("Range") != nil { connection.wait(until: gate) }
            let tag = tags.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let tag else { return ServerResponse(status: 200, body: .generated(length: HalfServer.length)) }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nETag: \(tag)\r\nContent-Length: \(HalfServer.length)\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(count: Int(HalfServer.half)))
            connection.waitUntilClosed()
            return nil
        }
        let operation = try HTTPRequestOperation.make(server.url("/"))
        operation.start()
        await pauseAtHalf(operation)
        #expect(await server.waitForRequests(2))
        let again = Log<Int64>()
        operation.setDownloadProgressBlock { _, total, _ in if total == HalfServer.half { again.append(total) } }
        gate.open()
        await again.wait(for: 1)
        await pauseAtHalf(operation)
        #expect(try await operation.value == HalfServer.body)
        #expect(server.requests.map { $0.header("If-Range") } == [nil, "\"1\"", nil])
    }

    @Test("a stream that can't be rewound skips the bytes it already has, or the operation fails", arguments: [true, false])
    func streams(isSame: Bool) async throws {
        let tag = ServerField("ETag", "\"\(HalfServer.length)-\(isSame ? 0 : 1)\"")
        let server = try HalfServer { _ in ServerResponse(status: 200, headers: [tag], body: .generated(length: HalfServer.length)) }
        let operation = try HTTPRequestOperation.make(server.url)
        let stream = TestStream()
        operation.outputStream = stream
        operation.start()
        await pauseAtHalf(operation)
        await operation.waitForEnd()
        if isSame {
            #expect(operation.error == nil && stream.data == HalfServer.body)
        } else {
            guard case OperationError.outputStreamNotRestartable? = operation.error else { throw TestError("no error") }
            #expect(Int64(stream.data.count) == HalfServer.half)
        }
    }

    @Test("an operation that never started requests no range, and the user's own range is kept")
    func noRange() async throws {
        let server = try LoopbackServer.standard()
        let paused = try HTTPRequestOperation.make(server.url("/bytes/100"))
        paused.pause()
        paused.resume()
        try await paused.run()
        let own = try HTTPRequestOperation.make(server.url("/bytes/100")) { $0.setValue("bytes=10-19", forHTTPHeaderField: "Range") }
        #expect(try await own.run() == GeneratedBody().data(offset: 10, count: 10))
        #expect(server.requests.map { $0.header("Range") } == [nil, "bytes=10-19"])
    }
}

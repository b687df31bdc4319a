// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Uploads of asynchronous sequences.
@Suite(.timeLimit(.minutes(2))) struct SequenceUploadTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func reply(_ request: UploadRequest) async throws -> EchoReply {
        try await request.validate().serializingDecodable(EchoReply.self).value
    }

    /// The body in pieces of 10,000 bytes.
    private static func pieces(_ body: Data) -> AsyncStream<Data> {
        AsyncStream { continuation in
            var rest = body
            while !rest.isEmpty {
                continuation.yield(rest.prefix(10_000))
                rest = rest.dropFirst(10_000)
            }
            continuation.finish()
        }
    }

    /// A sequence without an end, which notes when it is read no further.
    private struct Endless: AsyncSequence, Sendable {
        let ended: Log<Bool>

        final class Iterator: AsyncIteratorProtocol {
            private let ended: Log<Bool>

            init(_ ended: Log<Bool>) { self.ended = ended }

            deinit { ended.append(true) }

            func next() async -> Data? { Data(count: 100_000) }
        }

        func makeAsyncIterator() -> Iterator { Iterator(ended) }
    }

    /// A sequence that gives a piece and then waits for its cancellation.
    ///
    /// - Parameter waits: notes that it waits: one that is ended before it is asked for a second piece is not asked, and not cancelled.
    private static func waiting(_ piece: Data, _ waits: Log<Void>, _ ended: Log<Bool>) -> AsyncStream<Data> {
        let left = Lock<Data?>(piece)
        return AsyncStream {
            if let piece = left.withLock({ $0.take() }) { return piece }
            waits.append(())
            try? await Task.sleep(for: .seconds(3_600))
            return nil
        } onCancel: {
            ended.append(true)
        }
    }

    @Test("a sequence of unknown length is chunked, one of known length is not", arguments: [0, 1, 5_000_000], [true, false])
    func content(_ count: Int, _ isLengthKnown: Bool) async throws {
        let body = GeneratedBody().data(count: count)
        let reply = try await reply(
            manager.upload(Self.pieces(body), length: isLengthKnown ? Int64(count) : nil, to: server.url("/upload"), method: .put))
        #expect(reply.method == "PUT")
        #expect(reply.bodyLength == count && reply.bodyChecksum == CRC32.checksum(of: body))
        #expect(reply.header("Content-Length") == (isLengthKnown ? "\(count)" : nil))
        #expect(reply.header("Transfer-Encoding") == (isLengthKnown ? nil : "chunked"))
    }

    @Test("a sequence of arrays is the body of a URLRequest") func urlRequest() async throws {
        var request = try URLRequest(url: server.url("/echo"), method: .patch)
        request.setValue("a/b", forHTTPHeaderField: "Content-Type")
        let sequence = Self.pieces(Data("abc".utf8)).map { [UInt8]($0) }
        let reply = try await reply(manager.upload(sequence, with: request))
        #expect(reply.method == "PATCH" && reply.header("Content-Type") == "a/b" && reply.body == Data("abc".utf8))
        let made = try await self.reply(manager.upload({ Self.pieces(Data("abc".utf8)) }, length: 3, with: request))
        #expect(made.method == "PATCH" && made.header("Content-Length") == "3" && made.body == Data("abc".utf8))
    }

    @Test("the global functions") func globalFunctions() async throws {
        let url = server.url("/echo")
        let form = MultipartFormData()
        form.append(Data("value".utf8), withName: "name")
        #expect(try await reply(Curlew.upload(form, to: url)).body == form.encode())
        #expect(try await reply(Curlew.upload(form, with: URLRequest(url: url, method: .put))).body == form.encode())
    }

    @Test("fewer and more bytes than announced are errors", arguments: [999, 1001, 2_000, 500_000] as [Int64], [1_000, 1_500_000])
    func wrongLength(_ difference: Int64, _ count: Int) async throws {
        let announced = Int64(count) + difference - 1_000
        guard announced != Int64(count) else { return }
        let response = await manager.upload(Self.pieces(Data(count: count)), length: announced, to: server.url("/upload"))
            .serializingData().response
        #expect(response.error?.transferFailure?.kind == .requestBody)
        #expect(response.error?.transferFailure?.message.contains("\(announced) bytes announced") == true)
    }

    @Test("an error of the sequence fails the request with that error, also after many bytes", arguments: [0, 1, 300])
    func thrownError(_ pieces: Int) async throws {
        let sequence = AsyncThrowingStream<Data, any Error> { continuation in
            for _ in 0..<pieces { continuation.yield(Data(count: 10_000)) }
            continuation.finish(throwing: TestError("thrown"))
        }
        let request = manager.upload(sequence, to: server.url("/upload"))
        let error = await request.serializingData().response.error
        #expect(error as? TestError == TestError("thrown"))
        await #expect(throws: TestError.self) {
            try await manager.upload({ () async throws -> AsyncStream<Data> in throw TestError("made") }, to: server.url("/upload"))
                .serializingData().value
        }
    }

    @Test("progress reaches the total, which is unknown before", arguments: [true, false]) func progress(_ isLengthKnown: Bool) async throws
    {
        let count: Int64 = 3_000_000
        let request = manager.upload(
            Self.pieces(Data(count: Int(count))), length: isLengthKnown ? count : nil, to: server.url("/upload"))
        let totals = Log<Int64>()
        _ = try await reply(request.uploadProgress { totals.append($0.totalUnitCount) })
        #expect(request.uploadProgress.completedUnitCount == count && request.uploadProgress.totalUnitCount == count)
        #expect(Set(totals.elements).isSubset(of: isLengthKnown ? [count] : [-1, count]))
    }

    // MARK: Sent again

    @Test("a made sequence follows redirects that keep the body; one that is there fails them", arguments: [307, 308, 303])
    func redirects(_ status: Int) async throws {
        let body = GeneratedBody().data(count: 700_000)
        let url = server.url("/redirect-to?url=/upload&status=\(status)")
        let made = Log<Int>()
        let makeSequence: @Sendable () async throws -> AsyncStream<Data> = {
            made.append(1)
            return Self.pieces(body)
        }
        let reply = try await reply(manager.upload(makeSequence, length: 700_000, to: url))
        #expect(reply.bodyLength == (status == 303 ? 0 : 700_000))
        #expect(made.elements.count == (status == 303 ? 1 : 2))
        let response = await manager.upload(Self.pieces(body), to: url).validate().serializingDecodable(EchoReply.self).response
        if status == 303 {
            #expect(response.value?.method == "GET")
        } else {
            guard case .bodyNotRepeatable? = response.error?.redirectFailure else {
                Issue.record("\(String(describing: response.error))")
                return
            }
        }
    }

    @Test("a made sequence is sent again by a retry; one that is there is not retried") func retries() async throws {
        let asked = Log<Int>()
        manager.retrier = Retrier { request, _, completion in
            asked.append(1)
            completion(request.retryCount < 2, 0)
        }
        let made = Log<Int>()
        let body = Data("again".utf8)
        let request = manager.upload(
            {
                made.append(1)
                return Self.pieces(body)
            }, to: server.url("/flaky?fail=2"))
        #expect(try await request.validate().serializingString().value == "Attempt 3")
        #expect(made.elements.count == 3 && request.retryCount == 2)
        #expect(Set(server.requests.map(\.body)) == [body])
        let count = asked.elements.count
        let once = await manager.upload(Self.pieces(body), to: server.url("/flaky?fail=1&key=once")).validate().serializingData().response
        #expect(once.error?.unacceptableStatus == 503 && asked.elements.count == count)
    }

    @Test("a sequence of which nothing was sent is retried after a connection that failed") func retriedBeforeSending() async throws {
        let dead = try LoopbackServer { _, _ in nil }
        let deadURL = dead.url("/")
        dead.stop()
        let target = Log<String>()
        manager.adapter = Adapter { $0.url = URL(string: target.elements.last ?? "") }
        target.append(deadURL)
        let live = server.url("/upload")
        manager.retrier = Retrier { request, _, completion in
            target.append(live)
            completion(request.retryCount == 0, 0)
        }
        let body = GeneratedBody().data(count: 100_000)
        let reply = try await reply(manager.upload(Self.pieces(body), to: deadURL))
        #expect(reply.bodyChecksum == CRC32.checksum(of: body))
    }

    @Test("a made sequence is sent again with credentials; one that is there delivers the challenge") func authentication() async throws {
        let url = server.url("/auth-basic?user=u&password=p")
        let body = GeneratedBody().data(count: 50_000)
        let made = await manager.upload({ Self.pieces(body) }, to: url).authenticate(user: "u", password: "p").serializingData().response
        #expect(made.response?.statusCode == 200)
        #expect(server.requests.map(\.bodyChecksum) == [CRC32.checksum(of: body), CRC32.checksum(of: body)])
        let once = await manager.upload(Self.pieces(body), to: url).authenticate(user: "u", password: "p").serializingData().response
        #expect(once.response?.statusCode == 401)
    }

    // MARK: The end

    @Test("a refusal ends a sequence without an end", arguments: [true, false]) func earlyRefusal(_ isMade: Bool) async throws {
        let server = try LoopbackServer(bodies: { _ in .refused(.status(413)) }) { _, _ in nil }
        let ended = Log<Bool>()
        let request =
            isMade
            ? manager.upload({ Endless(ended: ended) }, to: server.url("/")) : manager.upload(Endless(ended: ended), to: server.url("/"))
        let response = await request.validate().serializingData().response
        #expect(response.error?.unacceptableStatus == 413 || response.error?.transferFailure?.kind == .connectionLost)
        await ended.wait(for: 1)
    }

    @Test("a refusal ends a sequence that gives nothing") func earlyRefusalOfSilence() async throws {
        let gate = Gate()
        let handling: @Sendable (ServerRequest) -> LoopbackServer.BodyHandling = { _ in
            _ = gate.wait()
            return .refused(.status(413))
        }
        let server = try LoopbackServer(bodies: handling) { _, _ in nil }
        let (waits, ended) = (Log<Void>(), Log<Bool>())
        let request = manager.upload(Self.waiting(Data("a".utf8), waits, ended), to: server.url("/")).validate()
        async let answer = request.serializingData().response
        await waits.wait(for: 1)
        gate.open()
        let response = await answer
        #expect(response.error?.unacceptableStatus == 413 || response.error?.transferFailure?.kind == .connectionLost)
        await ended.wait(for: 1)
    }

    enum Ending: CaseIterable {
        case cancel, task, manager, timeout
    }

    @Test("the sequence is cancelled with the request", arguments: Ending.allCases, [true, false])
    func cancellation(_ ending: Ending, _ isFull: Bool) async throws {
        let gate = Gate()
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            connection.wait(until: gate)
            return nil
        }
        defer { gate.open() }
        let ended = Log<Bool>()
        // Not before the sequence waits.
        let manager = makeManager { if ending == .timeout { $0.totalTimeout = .seconds(4) } }
        let waits = Log<Void>()
        let request =
            isFull
            ? manager.upload(Endless(ended: ended), to: server.url("/"))
            : manager.upload(Self.waiting(Data("a".utf8), waits, ended), to: server.url("/"))
        let task = Task { await request.serializingData().response.error }
        #expect(await gate.arrivals())
        if !isFull { await waits.wait(for: 1) }
        switch ending {
        case .cancel: request.cancel()
        case .task: task.cancel()
        case .manager: manager.invalidateAndCancel()
        case .timeout: break
        }
        let error = await task.value
        switch ending {
        case .cancel, .task: #expect(error?.isCancelled == true || error is CancellationError)
        case .manager: #expect(error?.isSessionInvalidated == true)
        case .timeout: #expect(error?.transferFailure?.kind == .totalTimeout)
        }
        await ended.wait(for: 1)
        withExtendedLifetime(request) {}
    }

    @Test("a slow server slows the sequence down") func backpressure() async throws {
        let gate = Gate()
        let server = try LoopbackServer(bodies: { _ in .unread }) { _, connection in
            connection.wait(until: gate)
            return nil
        }
        let taken = Log<Int>()
        let sequence = AsyncStream<Data> {
            taken.append(1)
            return Data(count: 1 << 20)
        }
        let request = manager.upload(sequence, to: server.url("/"))
        let task = Task { await request.serializingData().response }
        #expect(await gate.arrivals())
        // What the sockets' buffers take is a few MiB; without backpressure this would be the whole memory by now.
        #expect(await eventually { taken.elements.count >= 1 })
        request.cancel()
        _ = await task.value
        #expect(taken.elements.count < 64)
        gate.open()
    }

    @Test("many concurrent sequences arrive complete") func concurrent() async throws {
        let (manager, server) = (manager, server)
        let failures = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<100 {
                group.addTask {
                    let body = GeneratedBody(seed: UInt64(index)).data(count: index * 9_000)
                    let length = index % 2 == 0 ? Int64(body.count) : nil
                    let request = manager.upload({ Self.pieces(body) }, length: length, to: server.url("/upload"))
                    let reply = try? await request.validate().serializingDecodable(EchoReply.self).value
                    return reply?.bodyChecksum != CRC32.checksum(of: body)
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(failures == 0)
    }

    @Test("nginx receives the whole sequence over TLS and HTTP/2", .needsNginx, arguments: [0, 1_000, 5_000_000])
    func nginx(_ count: Int) async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        for url in [nginx.http, nginx.tls, nginx.tlsHTTP1] {
            let body = Self.pieces(Data(count: count))
            let response = await manager.upload(body, length: Int64(count), to: url + "/upload").validate().serializingString().response
            #expect(response.value == "\(count)\n", "\(url)")
            let chunked = await manager.upload({ Self.pieces(Data(count: count)) }, to: url + "/upload").validate().serializingData()
                .response
            #expect(chunked.error == nil, "\(url)")
        }
    }
}

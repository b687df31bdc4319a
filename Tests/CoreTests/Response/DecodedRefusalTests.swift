// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

// A1.2: `validate(decoding:)` of data, uploads, downloads and streams.
@Suite(.timeLimit(.minutes(1))) struct DecodedRefusalTests {
    /// An API's error.
    struct Problem: Codable, Equatable {
        var message: String
    }

    private struct Code: Decodable {
        let code: Int
    }

    enum Kind: CaseIterable, Sendable {
        case data, handler, upload, download, placed, stream, streamHandler
    }

    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static func body(_ message: String) -> Data { Data(#"{"message": "\#(message)"}"#.utf8) }

    /// Returns the error of a request of a kind, which gets no piece of a body.
    private func refusal(
        _ kind: Kind, _ manager: SessionManager, _ url: String = "http://mock/?token=s3cret", limit: Int = 1 << 20,
        decoder: any DataDecoder = JSONDecoder()
    ) async -> (any Error)? {
        func validated<Kind: DataRequest>(_ request: Kind) -> Kind {
            request.validate(decoding: Problem.self, decoder: decoder, maximumSize: limit)
        }
        switch kind {
        case .data: return await validated(manager.request(url)).serializingData().response.error
        case .handler:
            return await withCheckedContinuation { continuation in
                validated(manager.request(url)).response { continuation.resume(returning: $0.error) }
            }
        case .upload: return await validated(manager.upload(Data("x".utf8), to: url)).serializingData().response.error
        case .download:
            return await manager.download(url).validate(decoding: Problem.self, decoder: decoder, maximumSize: limit).serializingURL()
                .response.error
        case .placed:
            let file = directory.file("placed")
            let error = await manager.download(url, to: file).validate(decoding: Problem.self, decoder: decoder, maximumSize: limit)
                .serializingURL().response.error
            #expect(!FileManager.default.fileExists(atPath: file.path))
            return error
        case .stream:
            do {
                for try await _ in validated(manager.streamRequest(url)).bodyStream() { Issue.record("a piece came through") }
                return nil
            } catch {
                return error
            }
        case .streamHandler: return await validated(manager.streamRequest(url)).serializingData().response.error
        }
    }

    @Test(arguments: Kind.allCases)
    func `a body of any size may be decoded, and costs no more memory than it has bytes`(_ kind: Kind) async throws {
        let manager = SessionManager(mock: .answering(422, [:], #"{"message": "no"}"#))
        let error = try #require(await refusal(kind, manager, limit: .max)?.asCurlewError)
        #expect(error.decodedBody(as: Problem.self) == Problem(message: "no") && error.responseBody == #"{"message": "no"}"#)
    }

    @Test(arguments: Kind.allCases)
    func `the body of a refused response is decoded, with status, fields and request`(_ kind: Kind) async throws {
        let mock = MockTransport.answering(422, ["Content-Type": "application/json", "X-Request-Id": "7"], #"{"message": "no"}"#)
        let error = try #require(await refusal(kind, SessionManager(mock: mock))?.asCurlewError)
        #expect(error.decodedBody(as: Problem.self) == Problem(message: "no"))
        #expect(error.decodedBody(as: Code.self) == nil)
        #expect(statusOf(error) == 422)
        let request = try #require(error.request)
        #expect(request.headers.value(for: "x-request-id") == "7")
        #expect(request.method == (kind == .upload ? .post : .get))
        #expect(request.bodyData == Data(#"{"message": "no"}"#.utf8))
    }

    @Test(arguments: Kind.allCases)
    func `a body is decoded whole up to the limit, and a longer one not at all`(_ kind: Kind) async throws {
        for (length, isDecoded) in [(1 << 20, true), ((1 << 20) + 1, false)] {
            let filler = String(repeating: "a", count: length - Self.body("").count)
            let pieces = Self.body(filler)
            let mock = MockTransport { _ in
                [.head(500)] + stride(from: 0, to: pieces.count, by: 60_000).map { .bytes(pieces.dropFirst($0).prefix(60_000)) }
                    + [.complete()]
            }
            let error = try #require(await refusal(kind, SessionManager(mock: mock))?.asCurlewError)
            #expect((error.decodedBody(as: Problem.self)?.message == filler) == isDecoded, "\(length)")
            #expect(statusOf(error) == 500)
            #expect(error.request?.bodyData == pieces.prefix(FailedRequest.bodyLimit))
            #expect(error.request?.isBodyTruncated == true)
        }
    }

    @Test(arguments: Kind.allCases)
    func `what can't be decoded is the plain refusal with its body`(_ kind: Kind) async throws {
        for (text, type) in [
            ("<html>Bad gateway</html>", "text/html"), (#"{"other": 1}"#, "application/json"), ("", "application/json"),
            (#"{"message": "cut"#, "application/json"),
        ] {
            let error = try #require(
                await refusal(kind, SessionManager(mock: .answering(502, ["Content-Type": type], text)))?.asCurlewError)
            #expect(error.request?.decodedBody == nil)
            #expect(statusOf(error) == 502)
            #expect(error.request?.bodyData == Data(text.utf8))
        }
    }

    @Test func `an accepted status, HEAD and a failed transfer decode nothing`() async {
        let manager = SessionManager(mock: .answering(200, [:], #"{"message": "fine"}"#))
        #expect(await refusal(.data, manager) == nil)
        let head = SessionManager(mock: .answering(404, ["Content-Type": "application/json", "Content-Length": "17"], ""))
        let refused = await head.request("http://mock/", method: .head).validate(decoding: Problem.self).serializingData().response.error
        #expect(statusOf(refused) == 404 && refused?.asCurlewError?.request?.decodedBody == nil)
        for kind in [Kind.data, .download] {
            let mock = MockTransport { _ in [.head(500), .bytes(Self.body("no")), .complete(CurlewError.failure(.connectionLost))] }
            let lost = await refusal(kind, SessionManager(mock: mock))
            #expect(kindOf(lost) == .connectionLost)
            #expect(lost?.asCurlewError?.request?.decodedBody == nil)
        }
    }

    @Test func `a streamed body that is lost after its refusal is not decoded, although it could be`() async throws {
        let mock = MockTransport { _ in [.head(500), .bytes(Self.body("no")), .complete(CurlewError.failure(.connectionLost))] }
        let error = try #require(await refusal(.stream, SessionManager(mock: mock))?.asCurlewError)
        #expect(statusOf(error) == 500)
        #expect(error.request?.decodedBody == nil && error.request?.isBodyTruncated == true)
        #expect(error.request?.bodyData == Self.body("no"))
    }

    @Test(arguments: Kind.allCases)
    func `retriers see the decoded error of each attempt`(_ kind: Kind) async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(503, [:], #"{"message": "first"}"#), .response(503, [:], "no JSON"), .response(503, [:], #"{"message": "third"}"#),
        ])
        let manager = SessionManager(mock: mock)
        let seen = Inbox<String?>()
        manager.retrier = Retrying { request, error, completion in
            seen.put(error.asCurlewError?.decodedBody(as: Problem.self)?.message)
            completion(request.retryCount < 2, 0)
        }
        let error = try #require(await refusal(kind, manager)?.asCurlewError)
        #expect(seen.all == ["first", nil, "third"])
        #expect(error.decodedBody(as: Problem.self)?.message == "third")
        #expect(error.request?.attempt == 3)
    }

    @Test func `the first type that a body can be decoded as counts, and other validations refuse as before`() async throws {
        let manager = SessionManager(mock: .answering(400, ["Content-Type": "application/problem+json"], #"{"code": 3}"#))
        let request = manager.request("http://mock/").validate(contentType: ["application/json"]).validate(decoding: Problem.self)
            .validate(statusCode: [200], decoding: Code.self)
        let error = try #require(await request.serializingData().response.error?.asCurlewError)
        #expect(error.decodedBody(as: Code.self)?.code == 3)
        guard case .responseValidationFailed(.unacceptableContentType, _) = error else { throw error }
        // The status is accepted: the body is no error's.
        let accepted = SessionManager(mock: .answering(200, ["Content-Type": "text/plain"], #"{"code": 3}"#))
        let other = await accepted.request("http://mock/").validate(decoding: Code.self).validate(contentType: ["application/json"])
            .serializingData().response.error
        #expect(other?.asCurlewError?.isResponseValidationError == true && other?.asCurlewError?.request?.decodedBody == nil)
    }

    @Test func `a decoder runs on the session's queue, not on the transport's`() async throws {
        struct Decoder: DataDecoder {
            let queue: DispatchQueue
            func decode<Value: Decodable & Sendable>(_ type: Value.Type, from data: Data) throws -> Value {
                dispatchPrecondition(condition: .onQueue(queue))
                return try JSONDecoder().decode(type, from: data)
            }
        }
        for kind in Kind.allCases {
            let manager = SessionManager(mock: .answering(500, [:], #"{"message": "no"}"#))
            let error = await refusal(kind, manager, decoder: Decoder(queue: manager.session.queue))
            #expect(error?.asCurlewError?.decodedBody(as: Problem.self)?.message == "no", "\(kind)")
        }
    }

    @Test func `descriptions and reflection show neither the decoded body nor the fields`() async throws {
        let mock = MockTransport.answering(400, ["Set-Cookie": "a=hunter2"], #"{"message": "hunter2"}"#)
        let error = try #require(await refusal(.data, SessionManager(mock: mock))?.asCurlewError)
        #expect(error.decodedBody(as: Problem.self)?.message == "hunter2")
        var dumped = ""
        dump(error, to: &dumped)
        dump(error.request, to: &dumped)
        for text in [dumped, "\(error)", String(reflecting: error), "\(error as NSError)", error.localizedDescription] {
            #expect(!text.contains("hunter2") && !text.contains("s3cret"), "\(text)")
        }
    }

    @Test func `problem details are those that were decoded, also of more than 64 KiB`() async throws {
        let detail = String(repeating: "d", count: 100_000)
        let type: HTTPHeaders = ["Content-Type": "application/problem+json"]
        let manager = SessionManager(mock: .answering(403, type, #"{"title": "No", "detail": "\#(detail)"}"#))
        let plain = await manager.request("http://mock/").validate().serializingData().response.error
        #expect(plain?.asCurlewError?.problemDetails == nil)
        let request = manager.request("http://mock/").validate(decoding: ProblemDetails.self)
        let error = await request.serializingData().response.error?.asCurlewError
        #expect(error?.problemDetails?.detail == detail)
    }

    @Test func `a property list is decoded within its bounds only`() async throws {
        let nested = String(repeating: "<array>", count: 600) + String(repeating: "</array>", count: 600)
        let list = "<plist version=\"1.0\"><dict><key>message</key><string>no</string><key>rest</key>"
        for (rest, isDecoded) in [("<true/>", true), (nested, false)] {
            let manager = SessionManager(mock: .answering(500, [:], "\(list)\(rest)</dict></plist>"))
            let error = await refusal(.data, manager, decoder: PropertyListDecoder())
            #expect((error?.asCurlewError?.decodedBody(as: Problem.self)?.message == "no") == isDecoded)
        }
    }

    @Test(arguments: [0, -1, Int.max])
    func `any limit is valid`(_ limit: Int) async {
        let error = await refusal(.data, SessionManager(mock: .answering(500, [:], #"{"message": "no"}"#)), limit: limit)
        #expect(statusOf(error) == 500)
        #expect((error?.asCurlewError?.decodedBody(as: Problem.self) != nil) == (limit > 0))
    }

    @Test(arguments: [Kind.data, .download, .stream])
    func `a request that is cancelled while its refused body arrives decodes nothing`(_ kind: Kind) async throws {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { _, _, completion in
            Issue.record("a cancelled request is not retried")
            completion(false, 0)
        }
        let task = Task { await refusal(kind, manager) }
        let exchange = await mock.started[0]
        exchange.perform(.head(500), .bytes(Self.body("no").dropLast()))
        task.cancel()
        let error = await task.value
        #expect(error is CancellationError || statusOf(error) == 500 && kind == .stream)
        #expect(error?.asCurlewError?.request?.decodedBody == nil)
    }

    @Test func `a session that translates its errors has the original`() async {
        let manager = SessionManager(mock: .answering(500, [:], #"{"message": "no"}"#))
        manager.session.deliverErrors { _ in UserError(number: 1) }
        let request = manager.request("http://mock/").validate(decoding: Problem.self)
        #expect(await request.serializingData().response.error as? UserError == UserError(number: 1))
        #expect((request.delegate.ownError as? CurlewError)?.decodedBody(as: Problem.self)?.message == "no")
    }
}

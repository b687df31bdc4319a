// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct TransferStateTests {
    private static func state(
        _ method: HTTPMethod = .get, mayRepeat: Bool = true, headSize: Int = 4096, fieldSize: Int = 4096, fieldCount: Int = 100
    ) -> Machine {
        let limits = TransferState.HeadLimits(size: headSize, fieldSize: fieldSize, fieldCount: fieldCount, interimResponses: 32)
        return Machine(TransferState(method: method, mayRepeat: mayRepeat, limits: limits))
    }

    @Test("the phases of a transfer are in order")
    func phases() {
        let state = Self.state(.post)
        var phases = [state.phase]
        func note() { phases.append(state.phase) }
        state.launched(); note()
        state.setUp(reached: .connecting); note()
        state.setUp(reached: .securing); note()
        state.setUp(reached: .resolving); note()
        #expect(!state.requestWasSent)
        #expect(state.requestStarts(isStale: false) == .send); note()
        state.setUp(reached: .securing); note()
        #expect(state.requestWasSent)
        state.requestEnded(); note()
        #expect(state.take("HTTP/1.1 200 OK\r\n") == .proceed); note()
        #expect(!state.hasHead)
        #expect(state.take("\r\n").isDelivery); note()
        #expect(state.hasHead)
        state.requestEnded(); note()
        let expected: [TransferFailure.Phase] = [
            .queued, .resolving, .connecting, .securing, .securing, .sending, .sending, .waiting, .receivingHead, .receivingBody,
            .receivingBody,
        ]
        #expect(phases == expected)
        #expect(state.end() == .success)
    }

    @Test("interim responses are reported, up to a limit", arguments: [1, 32, 33])
    func interim(count: Int) {
        let state = Self.state()
        for index in 1...count {
            #expect(state.take("HTTP/1.1 103 Early Hints\r\n") == .proceed)
            #expect(state.take("Link: x\r\n") == .proceed)
            #expect((state.take("\r\n").interim?.value(for: "Link") == "x") == (index <= 32))
        }
        _ = state.take("HTTP/1.1 200 OK\r\n")
        let last = state.take("\r\n")
        #expect(last.isDelivery == (count <= 33))
        #expect(last.head.map { $0.headers.isEmpty } ?? true)
        #expect(last.head.map { $0.interimResponses.map(\.statusCode) == Array(repeating: 103, count: count) } ?? true)
        #expect(state.failureAtEnd() == (count > 32 ? .protocolViolation : nil))
    }

    @Test("lines of a head that was received line by line are found by their beginning, as those of others are")
    func beginnings() {
        let state = Self.state()
        let lines = ["HTTP/1.1 200 OK\r\n", "Server: a\r\n", "RATELIMIT: r=0\r\n", "\tfolded: a\r\n"]
        for line in lines { _ = state.take(line) }
        let head = state.take("\r\n").head
        let other = ResponseHead(bytes: Array(lines.joined().utf8))
        #expect(head != nil && head == other && head?.hashValue == other?.hashValue)
        for head in [head, other] {
            #expect(head?.hasLine(beginningWith: "ratelimit") == true && head?.hasLine(beginningWith: "server:") == true)
            // Of the two first letters that lines do not begin with, one is that of the status line.
            for beginning in ["retry-after", "http/", "folded", "date", "zone"] as [StaticString] {
                #expect(head?.hasLine(beginningWith: beginning) == false)
            }
        }
    }

    @Test("interim responses to a request that is sent again are not those of its response")
    func interimBeforeRepetition() {
        let state = Self.state()
        #expect(state.requestStarts(isStale: false) == .send)
        for line in ["HTTP/1.1 103 Early Hints\r\n", "Link: x\r\n"] { #expect(state.take(line) == .proceed) }
        #expect(state.take("\r\n").interim?.statusCode == 103)
        #expect(state.requestStarts(isStale: false) == .send)
        for line in ["HTTP/1.1 102 Processing\r\n", "\r\n", "HTTP/1.1 200 OK\r\n"] { _ = state.take(line) }
        #expect(state.take("\r\n").head?.interimResponses.map(\.statusCode) == [102])
    }

    @Test("101 ends the interim responses")
    func switching() {
        let state = Self.state()
        _ = state.take("HTTP/1.1 101 Switching Protocols\r\n")
        #expect(state.take("\r\n").head?.statusCode == 101)
    }

    @Test(
        "a truncated head is not a success",
        arguments: [[], ["HTTP/1.1 200 OK\r\n"], ["HTTP/1.1 200 OK\r\n", "A: 1\r\n"], ["HTTP/1.1 100 Continue\r\n", "\r\n"]])
    func cutHead(lines: [String]) {
        let state = Self.state()
        for line in lines { #expect(state.take(line) == .proceed) }
        #expect(state.failureAtEnd() == .connectionLost)
    }

    @Test("a head without a status line is invalid")
    func noStatusLine() {
        let state = Self.state()
        #expect(state.take("Content-Length: 1\r\n") == .proceed)
        guard case .fail(.protocolViolation, _) = state.take("\r\n") else {
            Issue.record("accepted")
            return
        }
    }

    @Test("final and interim heads and trailers share one limit")
    func headLimit() {
        let state = Self.state(headSize: 100)
        for line in ["HTTP/1.1 100 C\r\n", "\r\n", "HTTP/1.1 200 OK\r\n"] { #expect(state.take(line) == .proceed) }
        #expect(state.take("\r\n").isDelivery)
        #expect(state.take("X: \(String(repeating: "x", count: 50))\r\n") == .proceed)
        guard case .fail(.tooLarge, _) = state.take("Y: 123456789\r\n") else {
            Issue.record("accepted")
            return
        }
        #expect(state.failureAtEnd(CURLE_WRITE_ERROR, "Failed writing header") == .tooLarge)
    }

    @Test(
        "the number of fields in a head and its trailers is limited, in interim heads separately", arguments: [(3, true), (4, false)])
    func fieldCount(count: Int, fits: Bool) {
        let state = Self.state(fieldCount: 3)
        for line in ["HTTP/1.1 103 Early Hints\r\n", "A: 1\r\n", "B: 2\r\n", "C: 3\r\n"] { #expect(state.take(line) == .proceed) }
        #expect(state.take("\r\n").interim != nil)
        #expect(state.take("HTTP/1.1 200 OK\r\n") == .proceed)
        for index in 1...count { #expect(state.take("X\(index): x\r\n") == .proceed) }
        #expect(state.take("\r\n").isDelivery == fits)
        guard fits else {
            #expect(state.failureAtEnd(CURLE_WRITE_ERROR, "Failed writing header") == .tooLarge)
            return
        }
        #expect(state.take("Trailer: 4\r\n") == .fail(.tooLarge, "The response's head exceeds the limit of 3 fields"))
    }

    @Test("a field's size is limited", arguments: [(20, true), (21, false)])
    func fieldSize(size: Int, fits: Bool) {
        let state = Self.state(fieldSize: 20)
        _ = state.take("HTTP/1.1 200 OK\r\n")
        let action = state.take("X: \(String(repeating: "x", count: size - 5))\r\n")
        #expect(action == (fits ? .proceed : .fail(.tooLarge, "A field of the response's head exceeds the limit of 20 bytes")))
    }

    @Test("trailers are not a second head, even if they look like one")
    func trailers() {
        let state = Self.state()
        _ = state.take("HTTP/1.1 200 OK\r\n")
        #expect(state.take("\r\n").isDelivery)
        for line in ["X-Checksum: 1\r\n", "HTTP/1.1 500 Later\r\n", "\r\n"] { #expect(state.take(line) == .proceed) }
        #expect(state.statusCode == 200)
        #expect(state.end() == .success)
    }

    struct Framing: Sendable, CustomTestStringConvertible {
        var method = HTTPMethod.get
        var status = 200
        var fields: [String]
        var bodyBytes: Int
        let isWhole: Bool
        var testDescription: String { "\(method) \(status) \(fields) with \(bodyBytes) bytes" }
    }

    @Test(
        "a body must have its announced length, if that applies",
        arguments: [
            Framing(fields: [], bodyBytes: 5, isWhole: true), Framing(fields: ["Content-Length: 5\r\n"], bodyBytes: 5, isWhole: true),
            Framing(fields: ["content-length:\t5 \n"], bodyBytes: 4, isWhole: false),
            Framing(fields: ["Content-Length: 5\r\n"], bodyBytes: 6, isWhole: false),
            Framing(fields: ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"], bodyBytes: 9, isWhole: true),
            Framing(fields: ["Content-Length-X: 5\r\n"], bodyBytes: 9, isWhole: true),
            Framing(method: .head, fields: ["Content-Length: 5\r\n"], bodyBytes: 0, isWhole: true),
            Framing(status: 204, fields: ["Content-Length: 5\r\n"], bodyBytes: 0, isWhole: true),
            Framing(status: 304, fields: ["Content-Length: 5\r\n"], bodyBytes: 0, isWhole: true),
        ])
    func length(framing: Framing) {
        let state = Self.state(framing.method)
        _ = state.take("HTTP/1.1 \(framing.status) Any\r\n")
        for field in framing.fields { _ = state.take(field) }
        #expect(state.take("\r\n").isDelivery)
        state.received(bodyBytes: framing.bodyBytes)
        #expect(state.failureAtEnd() == (framing.isWhole ? nil : .connectionLost))
    }

    @Test("an interim response's fields don't affect the final one's body")
    func interimFraming() {
        let state = Self.state()
        for line in ["HTTP/1.1 103 E\r\n", "Content-Length: 5\r\n", "Content-Encoding: gzip\r\n", "\r\n", "HTTP/1.1 200 OK\r\n"] {
            _ = state.take(line)
        }
        #expect(state.take("\r\n").isDelivery)
        #expect(!state.isDecoded)
        #expect(state.end() == .success)
    }

    @Test("a request that must not be repeated is not started twice", arguments: [true, false])
    func duplicates(mayRepeat: Bool) {
        let state = Self.state(.post, mayRepeat: mayRepeat)
        state.launched()
        #expect(state.requestStarts(isStale: false) == .send)
        #expect(state.requestStarts(isStale: false) == (mayRepeat ? .send : .refuseDuplicate))
        #expect(state.failureAtEnd(CURLE_ABORTED_BY_CALLBACK) == (mayRepeat ? .requestBody : .connectionLost))
        #expect(state.requestWasSent)
    }

    @Test("a transfer sends ten requests at most, whether libcurl authenticates or repeats them", arguments: [true, false])
    func maximumRequests(isAuthenticated: Bool) {
        var state = TransferState(
            method: .get, mayRepeat: true, isAuthenticated: isAuthenticated,
            limits: .init(size: 4096, fieldSize: 1024, fieldCount: 100, interimResponses: 8))
        state.launched()
        for _ in 0..<10 { #expect(state.requestStarts(isStale: false) == .send) }
        #expect(state.requestStarts(isStale: false) == .refuseRepetition)
        guard case .failure(let kind, let message) = state.completed(code: CURLE_ABORTED_BY_CALLBACK, message: "", usesProxy: false) else {
            Issue.record("no failure")
            return
        }
        #expect(kind == .protocolViolation)
        #expect(message.contains("10 times") && message.contains("authentication") == isAuthenticated)
    }

    @Test("a stale connection is abandoned, once")
    func freshConnection() {
        let state = Self.state(.post, mayRepeat: false)
        state.launched()
        #expect(state.requestStarts(isStale: true) == .useFreshConnection)
        #expect(state.end(CURLE_ABORTED_BY_CALLBACK) == .useFreshConnection)
        #expect(!state.requestWasSent)
        state.launched()
        #expect(state.requestStarts(isStale: false) == .send)
        #expect(state.failureAtEnd(CURLE_GOT_NOTHING) == .connectionLost)
    }

    @Test("an HTTP/2 error before a response restarts a repeatable request, once", arguments: [true, false])
    func unprocessed(isRepeated: Bool) {
        let state = Self.state(mayRepeat: isRepeated)
        state.launched()
        #expect(state.requestStarts(isStale: false) == .send)
        let message = String(cString: curl_easy_strerror(CURLE_HTTP2))
        let first = state.end(CURLE_HTTP2, message)
        #expect((first == .useFreshConnection) == isRepeated)
        guard isRepeated else { return }
        state.launched()
        #expect(state.requestStarts(isStale: false) == .send)
        #expect(state.failureAtEnd(CURLE_HTTP2, message) == .connectionLost)
    }

    @Test(
        "a 408 on a pooled connection restarts a repeatable request, once",
        arguments: [(true, true), (true, false), (false, true)])
    func lateTimeout(isReused: Bool, mayRepeat: Bool) {
        let state = Self.state(mayRepeat: mayRepeat)
        state.launched()
        #expect(state.requestStarts(isStale: false, isReused: isReused) == .send)
        #expect(state.take("HTTP/1.1 408 Request Timeout\r\n") == .proceed)
        #expect(state.take("Content-Length: 0\r\n") == .proceed)
        guard isReused, mayRepeat else {
            #expect(state.take("\r\n").isDelivery)
            return
        }
        #expect(state.take("\r\n") == .retry)
        #expect(state.end(CURLE_WRITE_ERROR, "") == .useFreshConnection)
        state.launched()
        #expect(state.requestStarts(isStale: false) == .send)
        #expect(state.take("HTTP/1.1 408 Request Timeout\r\n") == .proceed)
        #expect(state.take("\r\n").isDelivery)
        #expect(state.end() == .success)
    }

    @Test(
        "a body without length and transfer coding is delimited by close",
        arguments: [
            (HTTPMethod.get, "200", "X: 1", true), (.get, "200", "Content-Length: 5", false),
            (.get, "200", "Transfer-Encoding: chunked", false),
            (.head, "200", "X: 1", false), (.get, "204", "X: 1", false), (.get, "304", "X: 1", false), (.post, "500", "X: 1", true),
        ])
    func framedByEnd(_ method: HTTPMethod, _ status: String, _ field: String, _ isDelimitedByClose: Bool) {
        let state = Self.state(method)
        #expect(!state.isDelimitedByClose)
        for line in ["HTTP/1.1 \(status) X\r\n", "\(field)\r\n", "\r\n"] { _ = state.take(line) }
        #expect(state.isDelimitedByClose == isDelimitedByClose)
    }

    @Test("libcurl giving up after five dead connections restarts the request, once")
    func fiveDead() {
        let state = Self.state()
        state.launched()
        #expect(state.end(CURLE_SEND_ERROR, "Connection died, tried 5 times before giving up") == .useFreshConnection)
        state.launched()
        #expect(state.failureAtEnd(CURLE_SEND_ERROR, "Connection died, tried 5 times before giving up") == .connect)
    }

    @Test("the first failure detected by Curlew takes precedence over libcurl's")
    func ownFailure() {
        let state = Self.state()
        state.fail(.decoding, "first")
        state.fail(.tooLarge, "second")
        #expect(state.end(CURLE_WRITE_ERROR) == .failure(.decoding, "first"))
    }
}

/// A state by reference, so that expectations can change it.
private final class Machine {
    private(set) var state: TransferState

    init(_ state: TransferState) { self.state = state }

    var phase: TransferFailure.Phase { state.phase }
    var hasHead: Bool { state.hasHead }
    var isDelimitedByClose: Bool { state.isDelimitedByClose }
    var isDecoded: Bool { state.isDecoded }
    var requestWasSent: Bool { state.requestWasSent }
    var statusCode: Int { state.statusCode }

    func launched() { state.launched() }
    func setUp(reached phase: TransferFailure.Phase) { state.setUp(reached: phase) }
    func requestStarts(isStale: Bool, isReused: Bool = false) -> TransferState.RequestAction {
        state.requestStarts(isStale: isStale, isReused: isReused)
    }
    func requestEnded() { state.requestEnded() }
    func take(_ line: String) -> TransferState.LineAction { Array(line.utf8).withUnsafeBytes { state.received(line: $0) } }
    func received(bodyBytes count: Int) { state.received(bodyBytes: count) }
    func fail(_ kind: TransferFailure.Kind, _ message: String) { _ = state.fail(kind, message) }

    func end(_ code: CURLcode = CURLE_OK, _ message: String = "") -> TransferState.Decision {
        state.completed(code: code, message: message, usesProxy: false)
    }

    /// The kind of failure that libcurl's completion means; `nil` for success.
    func failureAtEnd(_ code: CURLcode = CURLE_OK, _ message: String = "") -> TransferFailure.Kind? {
        if case .failure(let kind, _) = end(code, message) { kind } else { nil }
    }
}

extension TransferState.LineAction {
    fileprivate var head: ResponseHead? {
        if case .deliver(let head) = self { head } else { nil }
    }

    fileprivate var interim: ResponseHead? {
        if case .deliverInterim(let head) = self { head } else { nil }
    }

    fileprivate var isDelivery: Bool { head != nil }
}

@Suite(.timeLimit(.minutes(1))) struct TransferFailureKindTests {
    @Test(
        "libcurl's codes by kind",
        arguments: [
            (CURLE_URL_MALFORMAT, .resolving, .invalidURL), (CURLE_UNSUPPORTED_PROTOCOL, .resolving, .unsupportedScheme),
            (CURLE_UNSUPPORTED_PROTOCOL, .waiting, .protocolViolation), (CURLE_COULDNT_RESOLVE_HOST, .resolving, .nameResolution),
            (CURLE_COULDNT_RESOLVE_PROXY, .resolving, .proxy), (CURLE_COULDNT_CONNECT, .connecting, .connect),
            (CURLE_OPERATION_TIMEDOUT, .connecting, .connectTimeout), (CURLE_OPERATION_TIMEDOUT, .receivingBody, .totalTimeout),
            (CURLE_SSL_CONNECT_ERROR, .securing, .secureConnection), (CURLE_PEER_FAILED_VERIFICATION, .securing, .serverCertificate),
            (CURLE_SSL_CERTPROBLEM, .securing, .clientCertificate), (CURLE_WEIRD_SERVER_REPLY, .waiting, .protocolViolation),
            (CURLE_HTTP2_STREAM, .receivingBody, .protocolViolation), (CURLE_BAD_CONTENT_ENCODING, .waiting, .protocolViolation),
            (CURLE_GOT_NOTHING, .waiting, .connectionLost),
            (CURLE_PARTIAL_FILE, .receivingBody, .connectionLost), (CURLE_SEND_ERROR, .connecting, .connect),
            (CURLE_RECV_ERROR, .receivingBody, .connectionLost), (CURLE_SEND_FAIL_REWIND, .sending, .connectionLost),
            (CURLE_READ_ERROR, .sending, .requestBody), (CURLE_OUT_OF_MEMORY, .queued, .configuration),
            (CURLE_SSL_CACERT_BADFILE, .securing, .configuration), (CURLE_FTP_WEIRD_PASS_REPLY, .sending, .other),
        ] as [(CURLcode, TransferFailure.Phase, TransferFailure.Kind)])
    func kinds(code: CURLcode, phase: TransferFailure.Phase, expected: TransferFailure.Kind) {
        #expect(TransferFailure.Kind.of(code, phase: phase, message: "", usesProxy: false) == expected)
    }

    @Test(
        "libcurl's messages for an HTTP/2 error distinguish a peer that gives up from a violation",
        arguments: [
            (CURLE_HTTP2_STREAM, "HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR (err 2)", TransferFailure.Kind.connectionLost),
            (CURLE_HTTP2_STREAM, "HTTP/2 stream 1 was not closed cleanly: CANCEL (err 8)", .connectionLost),
            (CURLE_HTTP2_STREAM, "HTTP/2 stream 1 was not closed cleanly: PROTOCOL_ERROR (err 1)", .protocolViolation),
            (CURLE_HTTP2_STREAM, "HTTP/2 stream 1 was not closed cleanly: HTTP_1_1_REQUIRED (err 13)", .protocolViolation),
            (
                CURLE_HTTP2_STREAM,
                "HTTP/2 stream 1 was closed cleanly, but before getting  all response header fields, treated as error", .connectionLost
            ),
            (CURLE_HTTP2_STREAM, "Invalid HTTP header field was received: frame type: 1, stream: 1", .protocolViolation),
            (CURLE_HTTP2_STREAM, "Stream error in the HTTP/2 framing layer", .connectionLost),
            (CURLE_HTTP2, "Error in the HTTP2 framing layer", .connectionLost),
            (CURLE_HTTP2, "nghttp2 shuts down connection with error 6: FRAME_SIZE_ERROR", .protocolViolation),
            (CURLE_RECV_ERROR, "h2_process_pending_input: nghttp2_session_mem_recv() returned -905:Too many", .protocolViolation),
            (CURLE_GOT_NOTHING, "Empty reply from server", .protocolViolation),
        ])
    func overHTTP2(code: CURLcode, message: String, kind: TransferFailure.Kind) {
        #expect(TransferFailure.Kind.of(code, phase: .waiting, message: message, usesProxy: false, isHTTP2: true) == kind)
    }

    @Test("a bad argument is the peer's malformed chunk after a head, and ours before")
    func argument() {
        let kind = { TransferFailure.Kind.of(CURLE_BAD_FUNCTION_ARGUMENT, phase: $0, message: "", usesProxy: false) }
        #expect(kind(.receivingBody) == .protocolViolation)
        #expect(kind(.queued) == .configuration)
    }

    @Test("a connection refused by a proxy is a proxy failure, and malformed chunks are a violation")
    func context() {
        #expect(TransferFailure.Kind.of(CURLE_RECV_ERROR, phase: .connecting, message: "", usesProxy: true) == .proxy)
        let message = "Illegal or missing hexadecimal sequence in chunked-encoding"
        #expect(TransferFailure.Kind.of(CURLE_RECV_ERROR, phase: .receivingBody, message: message, usesProxy: false) == .protocolViolation)
    }
}

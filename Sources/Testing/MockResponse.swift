// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewLoopback
import CurlewTransport

/// What a ``MockTransport`` responds with, or how the exchange fails.
///
/// A value: its methods return changed copies.
///
/// ```swift
/// mock.stub(.get, "/report", respond: .file(report).delayed(by: .seconds(2)).inPieces(of: 1024, every: .milliseconds(100)))
/// mock.stub(.get, "/flaky", respond: .failure(.connectionLost), .status(503).header("Retry-After", "5"), .text("ok"))
/// ```
public struct MockResponse: Sendable {
    private enum Body {
        case data(Data)
        case file(URL)
        /// Data of which ranges can be requested, with its entity tag.
        case resource(Data, etag: String)
        /// Its length is not announced.
        case stream(Data)
    }

    private enum End {
        case complete
        case stall
        case failure(TransferFailure.Kind, message: String?)
        case error(any Error)
    }

    private var status: Int
    private var headers: HTTPHeaders
    private var body: Body
    private var trailers = HTTPHeaders()
    private var interim: [ResponseHead] = []
    private var delay = Duration.zero
    private var pieceSize: Int?
    private var interval = Duration.zero
    private var end = End.complete
    /// The number of body bytes before the end, if that is another than completion; `nil` for an end before the head.
    private var bytesBeforeEnd: Int?

    private init(status: Int, headers: HTTPHeaders, body: Body) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    // MARK: Responses

    /// A response with a status and a body of bytes; without a body by default.
    public static func status(_ status: Int, headers: HTTPHeaders = [:], data: Data = Data()) -> MockResponse {
        MockResponse(status: status, headers: headers, body: .data(data))
    }

    /// A response with bytes.
    public static func data(
        _ data: Data, type: String = "application/octet-stream", status: Int = 200, headers: HTTPHeaders = [:]
    ) -> MockResponse {
        MockResponse(status: status, headers: headers.adding("Content-Type", type), body: .data(data))
    }

    /// A response with text in UTF-8.
    public static func text(
        _ text: String, type: String = "text/plain; charset=utf-8", status: Int = 200, headers: HTTPHeaders = [:]
    ) -> MockResponse {
        data(Data(text.utf8), type: type, status: status, headers: headers)
    }

    /// A response with a value as JSON. If it can't be encoded, the exchange fails with the encoder's error.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - status: the status code.
    ///   - headers: header fields besides `Content-Type`.
    ///   - encoder: encodes it; by default with sorted keys.
    public static func json(
        _ value: some Encodable, status: Int = 200, headers: HTTPHeaders = [:], encoder: JSONEncoder? = nil
    ) -> MockResponse {
        do {
            let bytes = try (encoder ?? .sorted).encode(value)
            return data(bytes, type: "application/json", status: status, headers: headers)
        } catch {
            return .error(error)
        }
    }

    /// A response with the contents of a file, read for each request. If it can't be read, the exchange fails with that error.
    public static func file(
        _ url: URL, type: String = "application/octet-stream", status: Int = 200, headers: HTTPHeaders = [:]
    ) -> MockResponse {
        MockResponse(status: status, headers: headers.adding("Content-Type", type), body: .file(url))
    }

    /// Data of which a range can be requested, as for resumed downloads: honours `Range` with one range, `If-Range` and `If-None-Match`, with
    /// status 206, 416 or 304 (RFC 9110, sections 13 and 14), and sends `Accept-Ranges` and `ETag`.
    public static func resource(_ data: Data, etag: String = "\"1\"", type: String = "application/octet-stream") -> MockResponse {
        let headers: HTTPHeaders = ["Content-Type": type, "Accept-Ranges": "bytes", "ETag": etag]
        return MockResponse(status: 200, headers: headers, body: .resource(data, etag: etag))
    }

    /// A redirect to a URL or a path; 302 by default.
    public static func redirect(to location: String, status: Int = 302) -> MockResponse {
        MockResponse(status: status, headers: ["Location": location], body: .data(Data()))
    }

    /// An event stream (`text/event-stream`) with events that consist of data only; after them it ends.
    public static func events(_ data: String...) -> MockResponse {
        let lines = data.map { event in
            event.splitScalars(separator: "\n", omittingEmptySubsequences: false).map { "data: \($0)\n" }.joined() + "\n"
        }
        return MockResponse(
            status: 200, headers: ["Content-Type": "text/event-stream"], body: .stream(Data(lines.joined().utf8)))
    }

    // MARK: Failures

    /// A failed transfer, before any response.
    ///
    /// Its phase is the one in which the kind usually occurs, and shows whether the request was sent.
    public static func failure(_ kind: TransferFailure.Kind, message: String? = nil) -> MockResponse {
        var response = MockResponse(status: 0, headers: [:], body: .data(Data()))
        response.end = .failure(kind, message: message)
        return response
    }

    /// A transfer that fails with an error, unchanged.
    public static func error(_ error: any Error) -> MockResponse {
        var response = MockResponse(status: 0, headers: [:], body: .data(Data()))
        response.end = .error(error)
        return response
    }

    /// Nothing, until the transfer is cancelled: by the user, by a deadline, by the end of the session.
    public static var stalled: MockResponse {
        var response = MockResponse(status: 0, headers: [:], body: .data(Data()))
        response.end = .stall
        return response
    }

    // MARK: Changes

    /// Returns the response with a header field set.
    public func header(_ name: String, _ value: String) -> MockResponse {
        changed { $0.headers.update(name: name, value: value) }
    }

    /// Returns the response with an interim response (1xx; RFC 9110, section 15.2) before it, after those that it has: when the request's body
    /// was received, and before a delay. Also before a failure.
    ///
    /// As over a network, `100 Continue` is only part of ``ResponseHead/interimResponses``. With a status that is not interim, the exchange
    /// fails with ``TransferFailure/Kind/protocolViolation`` in place of it.
    public func interim(_ status: Int, headers: HTTPHeaders = [:]) -> MockResponse {
        guard ResponseHead.isInterim(status) else {
            return .failure(.protocolViolation, message: "The status \(status) is not that of an interim response")
        }
        return changed { $0.interim.append(ResponseHead(statusCode: status, headers: headers)) }
    }

    /// Returns the response with fields after its body.
    public func trailers(_ trailers: HTTPHeaders) -> MockResponse { changed { $0.trailers = trailers } }

    /// Returns the response with a wait on the transport's clock before it, which starts when the request's body was received.
    public func delayed(by delay: Duration) -> MockResponse { changed { $0.delay = delay } }

    /// Returns the response with its body in pieces of `size` bytes, and a wait on the transport's clock before each.
    public func inPieces(of size: Int, every interval: Duration = .zero) -> MockResponse {
        changed { response in
            response.pieceSize = max(1, size)
            response.interval = interval
        }
    }

    /// Returns the response with a failure after `count` bytes of its body, whose whole length is announced.
    public func failing(_ kind: TransferFailure.Kind = .connectionLost, after count: Int) -> MockResponse {
        changed { response in
            response.end = .failure(kind, message: nil)
            response.bytesBeforeEnd = count
        }
    }

    /// Returns the response with nothing after `count` bytes of its body, whose whole length is announced, until the transfer is cancelled.
    public func stalling(after count: Int) -> MockResponse {
        changed { response in
            response.end = .stall
            response.bytesBeforeEnd = count
        }
    }

    private func changed(_ change: (inout MockResponse) -> Void) -> MockResponse {
        var copy = self
        change(&copy)
        return copy
    }
}

// MARK: - Steps

extension MockResponse {
    /// The events of the transfer of a request.
    func steps(for request: MockRequest) -> [ScriptedTransport.Step] {
        let start = interim.map { ScriptedTransport.Step.interim($0) } + (delay > .zero ? [.wait(delay)] : [])
        if bytesBeforeEnd == nil, let end = endStep(for: request, received: 0) { return start + [end] }
        let (status, fields, data): (Int, HTTPHeaders, Data)
        do { (status, fields, data) = try content(for: request) } catch { return start + [.complete(error)] }
        let sent = bytesBeforeEnd.map { data.prefix($0) } ?? data
        let mayHaveBody = request.method != .head && status >= 200 && status != 204 && status != 304
        let end = endStep(for: request, received: sent.count) ?? .complete(nil, trailers: trailers)
        return start + [.head(status, fields)] + (mayHaveBody ? pieces(of: sent) : []) + [end]
    }

    private func endStep(for request: MockRequest, received: Int) -> ScriptedTransport.Step? {
        switch end {
        case .complete: nil
        case .stall: .stall
        case .error(let error): .complete(error)
        case .failure(let kind, let message):
            .complete(
                CurlewError.transferFailed(.simulated(kind, url: request.url, message: message, bytesBeforeEnd == nil ? nil : received)))
        }
    }

    private func content(for request: MockRequest) throws -> (Int, HTTPHeaders, Data) {
        switch body {
        case .stream(let data): return (status, headers, data)
        case .data(let data): return (status, announcing(data.count), data)
        case .file(let url):
            let data = try Data(readingFrom: url)
            return (status, announcing(data.count), data)
        case .resource(let data, let etag):
            guard request.headers["If-None-Match"] != etag else { return (304, ["ETag": etag], Data()) }
            guard let field = request.headers["Range"], (request.headers["If-Range"] ?? etag) == etag, let range = RequestedRange(field)
            else {
                return (status, announcing(data.count), data)
            }
            guard let part = range.resolved(length: Int64(data.count)) else {
                return (416, ["Content-Range": "bytes */\(data.count)", "ETag": etag], Data())
            }
            let bytes = data.dropFirst(Int(part.lowerBound)).prefix(Int(part.count))
            var fields = announcing(bytes.count)
            fields.update(name: "Content-Range", value: "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(data.count)")
            return (206, fields, bytes)
        }
    }

    /// The header fields, with the body's length unless they frame the body otherwise.
    private func announcing(_ length: Int) -> HTTPHeaders {
        guard headers["Content-Length"] == nil, headers["Transfer-Encoding"] == nil, status >= 200, status != 204, status != 304 else {
            return headers
        }
        return headers.adding("Content-Length", String(length))
    }

    private func pieces(of data: Data) -> [ScriptedTransport.Step] {
        let size = pieceSize ?? 64 * 1024
        return stride(from: 0, to: data.count, by: size).flatMap { start -> [ScriptedTransport.Step] in
            let piece = Data(data.dropFirst(start).prefix(size))
            return interval > .zero ? [.wait(interval), .bytes(piece)] : [.bytes(piece)]
        }
    }
}

extension HTTPHeaders {
    /// Returns the fields with another one, unless there is one of that name.
    func adding(_ name: String, _ value: String) -> HTTPHeaders {
        guard self[name] == nil else { return self }
        var fields = self
        fields.append(name: name, value: value)
        return fields
    }
}

extension JSONEncoder {
    /// An encoder with stable output.
    static var sorted: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }
}

extension TransferFailure {
    /// A failure as libcurl or the event loop would report it.
    ///
    /// - Parameter received: the number of body bytes received before; `nil` without a response.
    static func simulated(_ kind: Kind, url: String, message: String?, _ received: Int?) -> TransferFailure {
        let phase = received != nil ? Phase.receivingBody : kind.usualPhase
        return TransferFailure(
            kind: kind, url: url, phase: phase, message: message ?? "Simulated failure", requestWasSent: phase >= .sending,
            bytesReceived: Int64(received ?? 0))
    }
}

extension TransferFailure.Kind {
    /// The phase in which transfers usually fail with the kind.
    fileprivate var usualPhase: TransferFailure.Phase {
        switch self {
        case .invalidURL, .unsupportedScheme, .configuration, .notInCache, .cellularNotAllowed: .preparing
        case .queueTimeout: .queued
        case .nameResolution, .addressNotAllowed: .resolving
        case .connect, .connectTimeout, .proxy: .connecting
        case .secureConnection, .serverCertificate, .clientCertificate: .securing
        case .requestBody: .sending
        case .protocolViolation: .receivingHead
        case .decoding, .tooLarge: .receivingBody
        default: .waiting
        }
    }
}

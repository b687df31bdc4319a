// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A transport that records the exchanges of another one in a ``Cassette``, and changes nothing about them.
///
/// ```swift
/// let cassette = try Cassette(directory: directory)
/// let manager = SessionManager(transport: RecordingTransport(cassette))
/// …
/// try await cassette.flush()
/// ```
///
/// Every exchange is one: redirects, authenticated retries and retries each have their own. Bodies are recorded as they are delivered, so
/// decoded, and kept in memory until the exchange has completed. Interim responses (1xx) are passed on, and not recorded. Cancelled
/// exchanges, those whose response was cut off, raw streams and WebSockets are not recorded. Neither are those with a body of more than
/// ``maximumBodySize``, which ``Cassette/flush()`` reports. Thread-safe.
public final class RecordingTransport: Transport {
    /// Where exchanges are recorded.
    public let cassette: Cassette
    /// The largest body, in bytes and after decoding, of a request or a response that is recorded.
    public let maximumBodySize: Int
    private let base: any Transport
    /// That of the transport that performs the exchanges.
    public var cachePartition: String? { base.cachePartition }

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - cassette: where exchanges are recorded.
    ///   - base: the transport that performs them; by default a new one on libcurl.
    ///   - maximumBodySize: the largest body that is recorded; 64 MiB by default. A larger one is received nevertheless.
    public init(_ cassette: Cassette, base: any Transport = CurlTransport(), maximumBodySize: Int = 64 << 20) {
        self.cassette = cassette
        self.maximumBodySize = maximumBodySize
        self.base = base
    }

    /// Makes a transfer of the other transport, which is recorded when it has completed; see ``Transport/makeTransfer(_:id:observer:)``.
    public func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        var outgoing = request
        let body = request.body.map { RecordedBody($0, limit: maximumBodySize) }
        outgoing.body = body
        return base.makeTransfer(outgoing, id: id, observer: ExchangeRecorder(request, body, self, observer))
    }

    /// Makes a raw stream of the other transport, which is not recorded; see ``Transport/makeStream(_:id:observer:)``.
    public func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        base.makeStream(request, id: id, observer: observer)
    }

    /// Shuts the other transport down.
    public func shutDown() { base.shutDown() }

    /// Returns when the other transport has ended, and everything is written.
    public func waitUntilShutDown() async {
        await base.waitUntilShutDown()
        // The error stays with the cassette, for its own `flush()`.
        try? await cassette.flush()
    }
}

/// The bytes of a body, up to a limit.
private struct RecordedBytes {
    let limit: Int
    /// `nil` if there were more than the limit.
    private(set) var data: Data? = Data()

    init(limit: Int) {
        self.limit = limit
    }

    mutating func append(_ piece: UnsafeRawBufferPointer) {
        guard let count = data?.count else { return }
        if piece.count <= limit - count { data?.append(contentsOf: piece) } else { data = nil }
    }

    mutating func removeAll() { data = Data() }
}

/// The body of a request, which keeps what was read of it.
private final class RecordedBody: BodySource {
    private let base: any BodySource
    private let read: Lock<RecordedBytes>

    init(_ base: any BodySource, limit: Int) {
        self.base = base
        read = Lock(RecordedBytes(limit: limit))
    }

    /// `nil` if there were more than the limit.
    var bytes: Data? { read.withLock { $0.data } }
    var length: Int64? { base.length }
    var hasTrailers: Bool { base.hasTrailers }
    var trailers: HTTPHeaders { base.trailers }

    func prepare(onReadable: @escaping @Sendable () -> Void) {
        read.withLock { $0.removeAll() }
        base.prepare(onReadable: onReadable)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let result = base.read(into: buffer)
        if case .bytes(let count) = result { read.withLock { $0.append(UnsafeRawBufferPointer(rebasing: buffer[..<count])) } }
        return result
    }

    func rewind() -> Bool {
        guard base.rewind() else { return false }
        read.withLock { $0.removeAll() }
        return true
    }

    func transferDidComplete() { base.transferDidComplete() }
}

/// The observer of an exchange, which passes its events on. On the transport's thread.
private final class ExchangeRecorder: TransferObserver {
    private struct Received {
        var head: ResponseHead?
        var body: RecordedBytes
    }

    private let request: TransferRequest
    private let body: RecordedBody?
    private let cassette: Cassette
    private let limit: Int
    private let observer: any TransferObserver
    private let received: Lock<Received>

    init(_ request: TransferRequest, _ body: RecordedBody?, _ transport: RecordingTransport, _ observer: any TransferObserver) {
        self.request = request
        self.body = body
        cassette = transport.cassette
        limit = transport.maximumBodySize
        self.observer = observer
        received = Lock(Received(body: RecordedBytes(limit: limit)))
    }

    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) { observer.transfer(id, didReceiveInterim: head) }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        received.withLock { $0 = Received(head: head, body: RecordedBytes(limit: limit)) }
        return observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        received.withLock { $0.body.append(bytes) }
        return observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) { observer.transfer(id, didSend: count) }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        record(completion)
        observer.transfer(id, didComplete: completion)
    }

    private func record(_ completion: TransferCompletion) {
        let (head, responseBody) = received.withLock { ($0.head, $0.body.data) }
        guard let outcome = outcome(of: completion, head, responseBody ?? Data()) else { return }
        let requestBody = body == nil ? Data() : body?.bytes
        guard responseBody != nil, let requestBody else {
            let reason = "\(request.method) \(request.url.redactedURL) has a body of more than \(limit) bytes, and is not recorded"
            return cassette.fail(CassetteError(reason))
        }
        cassette.add(
            StoredExchange(
                method: request.method.rawValue, url: request.url, headers: request.headers, body: requestBody, outcome: outcome))
    }

    /// How the exchange ended; `nil` if that is not to be recorded.
    private func outcome(of completion: TransferCompletion, _ head: ResponseHead?, _ body: Data) -> StoredExchange.Outcome? {
        guard let error = completion.error else {
            guard let head else { return nil }
            var headers = head.headers
            if request.options.decodesContent, head.hasKnownCodings {
                for name in ["Content-Encoding", "Content-Length"] { headers.remove(name: name) }
            }
            return .response(status: head.statusCode, headers: headers, body: body, trailers: completion.trailers)
        }
        guard head == nil, case CurlewError.transferFailed(let failure) = error else { return nil }
        return .failure(failure.kind, message: failure.message)
    }
}

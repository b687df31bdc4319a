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
/// decoded, and kept in memory until the exchange has completed. Cancelled exchanges, those whose response was cut off, raw streams and
/// WebSockets are not recorded. Thread-safe.
public final class RecordingTransport: Transport {
    /// Where exchanges are recorded.
    public let cassette: Cassette
    private let base: any Transport

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - cassette: where exchanges are recorded.
    ///   - base: the transport that performs them; by default a new one on libcurl.
    public init(_ cassette: Cassette, base: any Transport = CurlTransport()) {
        self.cassette = cassette
        self.base = base
    }

    /// Starts an exchange, and records it when it has completed.
    public func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        var outgoing = request
        let body = request.body.map { RecordedBody($0) }
        outgoing.body = body
        base.start(outgoing, id: id, observer: ExchangeRecorder(request, body, cassette, observer))
    }

    /// Cancels an exchange.
    public func cancel(_ id: Int) { base.cancel(id) }

    /// Suspends or resumes an exchange.
    public func setSuspended(_ suspended: Bool, of id: Int) { base.setSuspended(suspended, of: id) }

    /// Resumes an exchange that its observer has paused.
    public func resumeReceiving(_ id: Int) { base.resumeReceiving(id) }

    /// Opens a raw stream, which is not recorded.
    public func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        base.openStream(request, id: id, observer: observer)
    }

    /// Sends bytes on a stream.
    public func send(_ bytes: Data, endOfStream: Bool, on id: Int) { base.send(bytes, endOfStream: endOfStream, on: id) }

    /// Shuts the other transport down.
    public func shutDown() { base.shutDown() }

    /// Returns when the other transport has ended, and everything is written.
    public func waitUntilShutDown() async {
        await base.waitUntilShutDown()
        // The error stays with the cassette, for its own `flush()`.
        try? await cassette.flush()
    }
}

/// The body of a request, which keeps what was read of it.
private final class RecordedBody: BodySource {
    private let base: any BodySource
    private let read = Lock(Data())

    init(_ base: any BodySource) {
        self.base = base
    }

    var bytes: Data { read.withLock { $0 } }
    var length: Int64? { base.length }
    var hasTrailers: Bool { base.hasTrailers }
    var trailers: HTTPHeaders { base.trailers }

    func prepare(onReadable: @escaping @Sendable () -> Void) {
        read.withLock { $0 = Data() }
        base.prepare(onReadable: onReadable)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let result = base.read(into: buffer)
        if case .bytes(let count) = result { read.withLock { $0.append(contentsOf: buffer[..<count]) } }
        return result
    }

    func rewind() -> Bool {
        guard base.rewind() else { return false }
        read.withLock { $0 = Data() }
        return true
    }

    func transferDidComplete() { base.transferDidComplete() }
}

/// The observer of an exchange, which passes its events on. On the transport's thread.
private final class ExchangeRecorder: TransferObserver {
    private struct Received {
        var head: ResponseHead?
        var body = Data()
    }

    private let request: TransferRequest
    private let body: RecordedBody?
    private let cassette: Cassette
    private let observer: any TransferObserver
    private let received = Lock(Received())

    init(_ request: TransferRequest, _ body: RecordedBody?, _ cassette: Cassette, _ observer: any TransferObserver) {
        self.request = request
        self.body = body
        self.cassette = cassette
        self.observer = observer
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        received.withLock { $0 = Received(head: head) }
        return observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        received.withLock { $0.body.append(contentsOf: bytes) }
        return observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) { observer.transfer(id, didSend: count) }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        if let outcome = outcome(of: completion) {
            cassette.add(
                StoredExchange(
                    method: request.method.rawValue, url: request.url, headers: request.headers, body: body?.bytes ?? Data(),
                    outcome: outcome))
        }
        observer.transfer(id, didComplete: completion)
    }

    /// How the exchange ended; `nil` if that is not to be recorded.
    private func outcome(of completion: TransferCompletion) -> StoredExchange.Outcome? {
        let (head, body) = received.withLock { ($0.head, $0.body) }
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

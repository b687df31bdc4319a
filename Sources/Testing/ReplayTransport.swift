// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewLoopback
import CurlewTransport

/// A transport that responds from a ``Cassette``, and records what is missing, as its mode says.
///
/// ```swift
/// let transport = try ReplayTransport(Cassette(directory: directory), mode: .once)
/// let manager = SessionManager(transport: transport)
/// ```
///
/// A request that no stored exchange matches, and that is not to be recorded, fails with ``UnmatchedRequest``, which names the stored ones.
/// What is recorded is delivered as it arrives, without backpressure. Raw streams and WebSockets are never replayed: they go to the other
/// transport, or fail without one. Thread-safe.
public final class ReplayTransport: Transport {
    /// When exchanges are recorded.
    public enum Mode: Sendable, Hashable {
        /// If the cassette is empty when the transport is created; later it is replayed, and other requests fail.
        case once
        /// Never: the network is not used.
        case none
        /// Whenever no stored exchange matches.
        case new
        /// Always: what was stored is removed when the transport is created, and nothing is replayed.
        case all
    }

    /// Which stored exchange responds to a request. What the cassette redacts is redacted before it is compared.
    public enum Matching: Sendable, Hashable {
        /// The first unused one with the same method, URL and body: each responds once, so that repeated requests get the recorded sequence.
        case strict
        /// The first unused one with the same method, host and path, and the same query items in any order; the last one responds again.
        case lenient
    }

    private struct State {
        var used: Set<Int> = []
    }

    /// The cassette.
    public let cassette: Cassette
    /// When exchanges are recorded.
    public let mode: Mode
    private let matching: Matching
    private let stored: [StoredExchange]
    private let base: (any Transport)?
    private let state: Lock<State>
    private let engine: ScriptedTransport

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - cassette: what responds, as it is now: what is recorded from now on does not.
    ///   - mode: when exchanges are recorded; by default never.
    ///   - matching: which stored exchange responds; strict by default.
    ///   - base: the transport to the network; by default a new one on libcurl, if the mode may need one.
    /// - Throws: the error of removing what is stored, with mode `all`.
    public init(_ cassette: Cassette, mode: Mode = .none, matching: Matching = .strict, base: (any Transport)? = nil) throws {
        self.cassette = cassette
        self.mode = mode
        self.matching = matching
        if mode == .all { try cassette.removeAll() }
        let stored = cassette.exchanges
        self.stored = stored
        let records = mode == .all || mode == .new || mode == .once && stored.isEmpty
        self.base = records ? RecordingTransport(cassette, base: base ?? CurlTransport()) : base
        let state = Lock(State())
        self.state = state
        let recorder = records ? self.base : nil
        engine = ScriptedTransport(keepsExchanges: false) { _ in
            [.sendBody, .ask { Self.respond(to: $0, stored, matching, state, cassette, recorder) }]
        }
    }

    /// The stored exchanges that have not responded.
    public var unusedExchanges: [StoredExchange] {
        let used = state.withLock { $0.used }
        return stored.indices.filter { !used.contains($0) }.map { stored[$0] }
    }

    private static func respond(
        to exchange: ScriptedExchange, _ stored: [StoredExchange], _ matching: Matching, _ state: Lock<State>, _ cassette: Cassette,
        _ recorder: (any Transport)?
    ) {
        let request = exchange.request
        let asked = StoredExchange(
            method: request.method.rawValue, url: request.url, headers: request.headers, body: exchange.sentBody,
            outcome: .failure(.other, message: "")
        ).redacted(by: cassette.redaction)
        let found = state.withLock { state -> Int? in
            let matches = stored.indices.filter { matching.matches(stored[$0], asked) }
            let index = matches.first { !state.used.contains($0) } ?? (matching == .lenient ? matches.last : nil)
            if let index { state.used.insert(index) }
            return index
        }
        if let found {
            let mock = MockRequest(
                number: 0, method: request.method, url: request.url, headers: request.headers, body: Data(), trailers: [:],
                options: request.options)
            return exchange.resume(with: stored[found].response.steps(for: mock))
        }
        guard let recorder else {
            let error = UnmatchedRequest(
                request: "\(request.method) \(asked.url.redactedURL)", candidates: stored.map(\.description), kind: "stored exchange")
            return exchange.resume(with: [.complete(error)])
        }
        var outgoing = request
        // Its own body has been read.
        if request.body != nil { outgoing.body = DataBody(exchange.sentBody) }
        recorder.start(outgoing, id: exchange.id, observer: ForwardedExchange(exchange))
    }

    // MARK: Transport

    /// Starts an exchange: responds, records, or fails.
    public func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        engine.start(request, id: id, observer: observer)
    }

    /// Cancels an exchange.
    public func cancel(_ id: Int) {
        engine.cancel(id)
        base?.cancel(id)
    }

    /// Suspends or resumes an exchange.
    public func setSuspended(_ suspended: Bool, of id: Int) { engine.setSuspended(suspended, of: id) }

    /// Resumes an exchange that its observer has paused.
    public func resumeReceiving(_ id: Int) {
        engine.resumeReceiving(id)
        base?.resumeReceiving(id)
    }

    /// Opens a raw stream at the other transport; without one it fails with ``UnmatchedRequest``.
    public func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        if let base { return base.openStream(request, id: id, observer: observer) }
        let error = UnmatchedRequest(request: "a stream to \(request.host):\(request.port)", candidates: [], kind: "stored exchange")
        engine.makeStream(request, id: id, observer: observer).complete(error)
    }

    /// Sends bytes on a stream.
    public func send(_ bytes: Data, endOfStream: Bool, on id: Int) { base?.send(bytes, endOfStream: endOfStream, on: id) }

    /// Ends all exchanges with `CurlewError.sessionInvalidated`, and refuses new ones.
    public func shutDown() {
        engine.shutDown()
        base?.shutDown()
    }

    /// Returns when the other transport has ended, and everything is written.
    public func waitUntilShutDown() async { await base?.waitUntilShutDown() }
}

extension ReplayTransport.Matching {
    fileprivate func matches(_ stored: StoredExchange, _ asked: StoredExchange) -> Bool {
        guard stored.method == asked.method else { return false }
        switch self {
        case .strict: return stored.url == asked.url && stored.body == asked.body
        case .lenient:
            let (lhs, rhs) = (URLParts(stored.url), URLParts(asked.url))
            return lhs.scheme == rhs.scheme && lhs.authority == rhs.authority && lhs.path == rhs.path && lhs.sortedItems == rhs.sortedItems
        }
    }
}

extension URLParts {
    fileprivate var sortedItems: [String] { items.map { "\($0.name)=\($0.value)" }.sorted() }
}

/// Passes the events of an exchange that is being recorded on to the one that waits for it.
private final class ForwardedExchange: TransferObserver {
    private let exchange: ScriptedExchange

    init(_ exchange: ScriptedExchange) {
        self.exchange = exchange
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        exchange.resume(with: [.received(head)])
        return exchange.isOver ? .cancel : .proceed
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        exchange.resume(with: [.bytes(Data(bytes))])
        return exchange.isOver ? .cancel : .proceed
    }

    func transfer(_ id: Int, didSend count: Int64) {}

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        exchange.resume(with: [.complete(completion.error, trailers: completion.trailers)])
    }
}

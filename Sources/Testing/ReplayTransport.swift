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
        /// How many of the exchanges with a key have responded.
        var counts: [Matching.Key: Int] = [:]
    }

    /// The cassette.
    public let cassette: Cassette
    /// When exchanges are recorded.
    public let mode: Mode
    private let stored: [StoredExchange]
    private let base: (any Transport)?
    private let state: Lock<State>
    private let engine: ScriptedTransport
    private let partition = Lock<String?>("replay")
    /// What keeps its responses apart from those of the network in caches and files that sessions share; `replay` by default, also where it
    /// records. With `nil`, set before the session is created, they may answer requests of other sessions with the same cache.
    public var cachePartition: String? {
        get { partition.withLock { $0 } }
        set { partition.withLock { $0 = newValue } }
    }

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
        if mode == .all { try cassette.removeAll() }
        let stored = cassette.exchanges
        self.stored = stored
        let records = mode == .all || mode == .new || mode == .once && stored.isEmpty
        self.base = records ? RecordingTransport(cassette, base: base ?? CurlTransport()) : base
        let state = Lock(State())
        self.state = state
        let recorder = records ? self.base : nil
        // A cassette may have thousands, and comparing each with each request takes minutes.
        let places = Dictionary(grouping: stored.indices) { matching.key(of: stored[$0]) }
        engine = ScriptedTransport(keepsExchanges: false) { _ in
            [.sendBody, .ask { Self.respond(to: $0, stored, places, matching, state, cassette, recorder) }]
        } serve: {
            Self.refuse($0)
        }
    }

    /// The stored exchanges that have not responded.
    public var unusedExchanges: [StoredExchange] {
        let used = state.withLock { $0.used }
        return stored.indices.filter { !used.contains($0) }.map { stored[$0] }
    }

    private static func respond(
        to exchange: ScriptedExchange, _ stored: [StoredExchange], _ places: [Matching.Key: [Int]], _ matching: Matching,
        _ state: Lock<State>, _ cassette: Cassette, _ recorder: (any Transport)?
    ) {
        let request = exchange.request
        let asked = StoredExchange(
            method: request.method.rawValue, url: request.url, headers: request.headers, body: exchange.sentBody,
            outcome: .failure(.other, message: "")
        ).redacted(by: cassette.redaction)
        let key = matching.key(of: asked)
        let matches = places[key] ?? []
        let found = state.withLock { state -> Int? in
            let count = state.counts[key, default: 0]
            guard count < matches.count else { return matching == .lenient ? matches.last : nil }
            state.counts[key] = count + 1
            state.used.insert(matches[count])
            return matches[count]
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
        let recording = recorder.makeTransfer(outgoing, id: exchange.id, observer: ForwardedExchange(exchange))
        // For one that is cancelled, maybe before.
        exchange.beforeCompletion { recording.cancel() }
        recording.start()
    }

    private static func refuse(_ stream: ScriptedStream) {
        let name = "\(stream.request.host):\(stream.request.port)"
        stream.complete(UnmatchedRequest(request: "a stream to \(name)", candidates: [], kind: "stored exchange"))
    }

    // MARK: Transport

    /// Makes a transfer, which responds, records, or fails; see ``Transport/makeTransfer(_:id:observer:)``.
    public func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        engine.makeTransfer(request, id: id, observer: observer)
    }

    /// Makes a raw stream of the other transport; without one it fails with ``UnmatchedRequest``. See
    /// ``Transport/makeStream(_:id:observer:)``.
    public func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        (base ?? engine).makeStream(request, id: id, observer: observer)
    }

    /// Ends all exchanges with `CurlewError.sessionInvalidated`, and refuses new ones.
    public func shutDown() {
        engine.shutDown()
        base?.shutDown()
    }

    /// Returns when the other transport has ended, and everything is written.
    public func waitUntilShutDown() async {
        await base?.waitUntilShutDown()
        await engine.waitUntilShutDown()
    }
}

extension ReplayTransport.Matching {
    /// What a stored exchange and a request have to have in common.
    fileprivate struct Key: Hashable {
        let method: String
        let url: [String]
        let body: Data
    }

    fileprivate func key(of exchange: StoredExchange) -> Key {
        switch self {
        case .strict: return Key(method: exchange.method, url: [exchange.url], body: exchange.body)
        case .lenient:
            let parts = URLParts(exchange.url)
            return Key(method: exchange.method, url: [parts.scheme, parts.authority, parts.path] + parts.sortedItems, body: Data())
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

    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) { exchange.resume(with: [.interim(head)]) }

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

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

/// The configuration of all transfers of an event loop.
public struct TransportConfiguration: Sendable, Hashable {
    /// The most transfers to one host (scheme, name and port) at a time; further ones are queued, first come first served.
    ///
    /// 64 by default; `nil` for no limit.
    public var maximumConnectionsPerHost: Int? = 64

    /// The most idle connections pooled for later requests; 256 by default. Exceeded for a while after a burst of requests.
    public var maximumIdleConnections = 256

    /// The longest time for which a connection may be idle and then be used again; 118 seconds by default, `nil` for no limit.
    ///
    /// A connection that was idle for longer is closed when the event loop next looks for one; over HTTP/2 and HTTP/3 whole seconds count.
    /// 0 gives each request of HTTP/1.1 a new connection. A server's `Keep-Alive: timeout=5` (RFC 2068, section 19.7.1) limits its own
    /// further, to a second less, so that no request is sent while the server closes it.
    public var maximumIdleTime: Duration? = defaultIdleTime

    /// That of libcurl.
    static let defaultIdleTime = Duration.seconds(118)

    /// Whether several transfers share one HTTP/2 connection.
    ///
    /// `nil`, the default, shares connections with libcurl 8.3 and later: before, transfers hang when others on their connection are
    /// cancelled in the middle of their bodies, when it ends together with their last bytes, or after GOAWAY. Transfers on a shared
    /// connection do not count individually against ``maximumConnectionsPerHost``.
    public var multiplexes: Bool?

    /// The number of event loops, each with a thread and connections of its own; 1 by default, clamped to 1 to 64.
    ///
    /// For programs whose loop takes a whole processor: many small requests, or TLS. Transfers go to the loop with an idle connection to
    /// their host, or with the least load; those that may share an HTTP/2 connection, to the loop of their host, so that one host that
    /// speaks HTTP/2 gains nothing. Limits and the order of waiting transfers are those of the session, not of the loop. Observers of one
    /// transfer are called by one thread, those of different transfers by several at a time. A loop's thread starts with its first transfer.
    public var loops = 1

    /// Creates a configuration with the defaults.
    public init() {}

    /// The configuration of one of several loops.
    func part(_ index: Int, of count: Int) -> TransportConfiguration {
        var part = self
        let idle = max(0, maximumIdleConnections)
        part.maximumIdleConnections = idle / count + (index < idle % count ? 1 : 0)
        return part
    }
}

/// The transport on libcurl: the handle of a thread that runs libcurl's multi interface.
///
/// A session makes its own, or has a part of one that sessions share (`SharedTransport`). The type is public for transports that wrap it:
/// to record, reroute or count.
///
/// Requests are sent to the thread as messages, which transfer the ownership of their contents; only the thread accesses transfers. The
/// thread starts with the first request and ends with ``shutDown()``, which `deinit` calls as well. Its implementation is in
/// `EventLoopThread`: read that first. With several loops (``TransportConfiguration/loops``) there are as many such threads, and
/// `LoopDispatcher` is in front of them.
public final class CurlTransport: Transport {
    /// The thread's commands. Their numbers are those by which it knows transfers and streams. The large ones are stored elsewhere, as each
    /// request copies some.
    enum Command: Sendable {
        case start(CurlTransfer)
        case openStream(CurlStream)
        /// A transfer that has waited for its place may begin.
        case launch(Int)
        case cancel(Int)
        case setSuspended(Bool, Int)
        case resumeReceiving(Int)
        case resumeSending(Int)
        case send(Data, endOfStream: Bool, Int)
        /// The decision on a host's certificates, or on the certificate that it gets.
        indirect case decided(TrustQuestion, number: Int, TrustQuestion.Answer)
        /// The answer of a session's resolver.
        indirect case resolved(Resolution.Question, Result<[String], any Error>)
        /// A job of a task that prefers this thread.
        case run(UnownedJob)
        /// A look at the loop, or `nil` if there is none.
        case visit(@Sendable (EventLoopThread?) -> Void)
        case stop
        /// The process is exiting: stop touching shared state.
        case park
    }

    /// That of the first loop.
    let mailbox: Mailbox
    /// In front of several loops; `nil` for one.
    let dispatcher: LoopDispatcher?
    /// The last one of a transfer or stream.
    private let lastNumber = Lock(0)

    private static let mostLoops = 64

    /// Creates a transport; its thread starts with the first request.
    public convenience init(configuration: TransportConfiguration = TransportConfiguration()) {
        self.init(configuration: configuration, makePoller: { try SystemPoller() })
    }

    /// Creates a transport with another poller.
    package init(
        configuration: TransportConfiguration = TransportConfiguration(), makePoller: @escaping @Sendable () throws -> any Poller
    ) {
        let count = min(max(1, configuration.loops), Self.mostLoops)
        let mailboxes = (0..<count).map { index in
            Mailbox(configuration: configuration.part(index, of: count), makePoller: makePoller, index: index, count: count)
        }
        mailbox = mailboxes[0]
        dispatcher = count == 1 ? nil : LoopDispatcher(mailboxes, configuration: configuration)
    }

    deinit {
        shutDown()
    }

    /// Calls `observer` whenever a connection is opened, reused, idle or closed. Without one, the default, connections are not followed.
    ///
    /// Only before the first transfer; sessions with event monitors call it. The observer is called on the event loop's thread, must not
    /// block, and is retained until the loop has ended.
    package func observeConnections(_ observer: @escaping @Sendable (ConnectionEvent) -> Void) {
        for mailbox in mailboxes { mailbox.connectionObserver = observer }
    }

    /// The loops' mailboxes.
    var mailboxes: [Mailbox] { dispatcher?.mailboxes ?? [mailbox] }

    /// A number for a transfer or stream, or for one of the sessions that share the transport; not 0.
    func makeNumber() -> Int {
        lastNumber.withLock { number in
            number += 1
            return number
        }
    }

    /// Makes a transfer; see ``Transport/makeTransfer(_:id:observer:)``.
    public func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        CurlTransfer(request, id: id, number: makeNumber(), observer, on: mailbox)
    }

    /// Makes a stream; see ``Transport/makeStream(_:id:observer:)``.
    public func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        CurlStream(request.prepared, id: id, number: makeNumber(), observer, on: mailbox)
    }

    /// Ends all transfers and streams; see ``Transport/shutDown()``.
    public func shutDown() {
        for mailbox in mailboxes { mailbox.close() }
    }

    /// Waits for the end of all threads; see ``Transport/waitUntilShutDown()``.
    public func waitUntilShutDown() async {
        for mailbox in mailboxes { await mailbox.waitUntilEnded() }
    }
}

extension CurlTransport.Command {
    /// Completes a start with an error, and runs a job on a global queue. The other commands have no effect to report.
    func refuse(_ error: CurlewError, by mailbox: Mailbox) {
        let completion = TransferCompletion(error: error, metrics: TransferMetrics())
        switch self {
        case .start(let start):
            start.slot?.release()
            start.observer.transfer(start.id, didComplete: completion)
        case .openStream(let stream):
            stream.slot?.release()
            stream.observer.stream(stream.id, didComplete: completion)
        case .visit(let body): body(nil)
        case .run(let job): DispatchQueue.global().async { Self.perform(job, of: mailbox) }
        default: break
        }
    }

    /// Whether the command starts a transfer.
    var isStart: Bool {
        if case .start = self { true } else { false }
    }

    /// Whether the command justifies creating the thread; the others refer to earlier ones.
    var startsSomething: Bool {
        switch self {
        case .start, .openStream, .run: true
        default: false
        }
    }

    /// Whether the command looks at the loop.
    var isVisit: Bool {
        if case .visit = self { true } else { false }
    }

    /// The URL of the transfer or stream to start.
    var url: String {
        switch self {
        case .start(let start): start.request.url
        case .openStream(let stream): stream.request.url
        default: ""
        }
    }
}

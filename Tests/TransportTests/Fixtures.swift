// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport

@testable import CurlewTransport

/// A body that provides the steps that a test feeds it.
final class FedBody: BodySource {
    enum Step: Sendable {
        case bytes(Data)
        case unavailable
        case end
        case failed(any Error)
    }

    private struct State {
        var steps: [Step]
        var onReadable: (@Sendable () -> Void)?
        var reads = 0
    }

    let length: Int64?
    private let state: Lock<State>

    init(_ steps: [Step] = [], length: Int64? = nil) {
        self.length = length
        state = Lock(State(steps: steps))
    }

    var isPrepared: Bool { state.withLock { $0.onReadable != nil } }

    /// The number of reads so far.
    var reads: Int { state.withLock { $0.reads } }

    /// Adds a step, and calls `onReadable` if `waking` is true.
    func feed(_ step: Step, waking: Bool = true) {
        let onReadable = state.withLock { state in
            state.steps.append(step)
            return state.onReadable
        }
        if waking { onReadable?() }
    }

    func prepare(onReadable: @escaping @Sendable () -> Void) {
        state.withLock { $0.onReadable = onReadable }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        state.withLock { state in
            state.reads += 1
            guard !state.steps.isEmpty else { return .unavailable }
            switch state.steps.removeFirst() {
            case .bytes(let data):
                let count = min(data.count, buffer.count)
                data.copyBytes(to: buffer, count: count)
                if count < data.count { state.steps.insert(.bytes(data.dropFirst(count)), at: 0) }
                return .bytes(count)
            case .unavailable: return .unavailable
            case .end: return .end
            case .failed(let error): return .failed(error)
            }
        }
    }

    func rewind() -> Bool { false }
}

/// A port on 127.0.0.1 on which the system accepts connections and nothing responds.
final class SilentListener: Sendable {
    let port: Int
    private let descriptor: Int32
    private let clients: [Int32]

    /// If `full` is true, the system accepts no further connections either.
    init(backlog: Int32, full: Bool = false) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let isListening = Self.withAddress(&address) { address in
            bind(descriptor, address, size) == 0 && listen(descriptor, backlog) == 0 && getsockname(descriptor, address, &size) == 0
        }
        guard isListening else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        port = Int(UInt16(bigEndian: address.sin_port))
        var clients: [Int32] = []
        for _ in 0..<(full ? backlog + 8 : 0) {
            let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            _ = Self.withAddress(&address) { connect(client, $0, size) }
            clients.append(client)
        }
        self.clients = clients
    }

    deinit {
        for descriptor in clients + [descriptor] { close(descriptor) }
    }

    private static func withAddress<Result>(_ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>) -> Result) -> Result {
        withUnsafeMutablePointer(to: &address) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
    }
}

/// The system's poller with counters.
final class CountingPoller: Poller {
    final class Counts: Sendable {
        private let counts = Lock((waits: 0, calls: 0))
        var value: (waits: Int, calls: Int) { counts.withLock { $0 } }
        func addWait() { counts.withLock { $0.waits += 1 } }
        func addCall() { counts.withLock { $0.calls += 1 } }
    }

    private let poller: SystemPoller
    private let counts: Counts

    init(counts: Counts) throws {
        poller = try SystemPoller()
        self.counts = counts
    }

    convenience init() throws { try self.init(counts: Counts()) }

    var wakeUp: WakeUp { poller.wakeUp }

    func watch(_ socket: Int32, from old: SocketEvents, to new: SocketEvents) -> Int32 {
        counts.addCall()
        return poller.watch(socket, from: old, to: new)
    }

    func forget(_ socket: Int32) { poller.forget(socket) }

    func wait(milliseconds: Int32, onWake: () -> Void, onEvent: (Int32, SocketEvents) -> Void) -> Bool {
        counts.addWait()
        return poller.wait(milliseconds: milliseconds, onWake: onWake, onEvent: onEvent)
    }
}

/// Bodies in brotli, each 13 bytes of which decode to 16 MiB in a single step: that fills the largest window before it puts out a byte.
enum BrotliWindows {
    private struct Bits {
        private(set) var bytes: [UInt8] = []
        private var count = 0

        /// Appends bits, the lowest first.
        mutating func append(_ value: Int, _ width: Int) {
            for index in 0..<width {
                if count % 8 == 0 { bytes.append(0) }
                bytes[count / 8] |= UInt8(value >> index & 1) << UInt8(count % 8)
                count += 1
            }
        }

        /// Appends a prefix code of a single symbol, which takes no bits where it is used.
        mutating func append(onlySymbol symbol: Int, _ width: Int) {
            append(1, 2)
            append(0, 2)
            append(symbol, width)
        }

        /// Appends a meta-block (RFC 7932, section 9.2) that inserts one literal so many times.
        mutating func append(run length: Int) {
            append(0, 1)  // not the last
            append(2, 2)  // six nibbles of length
            append(length - 1, 24)
            append(0, 1)  // compressed
            append(0, 3 + 6 + 2 + 2)  // one block type each, plain distances, one context mode, one tree each
            append(onlySymbol: 0x61, 8)
            append(onlySymbol: 504, 10)  // insertion of 22594 or more literals
            append(onlySymbol: 0, 6)
            append(length - 22_594, 24)
        }
    }

    static func body(_ windows: Int) -> [UInt8] {
        var bits = Bits()
        bits.append(0b1111, 4)  // a window of 16 MiB
        for _ in 0..<windows { bits.append(run: 16 << 20) }
        bits.append(0b11, 2)  // the last one, empty
        return bits.bytes
    }

    /// A body that shows to be corrupt once its window is filled, except for one byte, so that nothing is put out.
    static var corrupt: [UInt8] {
        var bits = Bits()
        bits.append(0b1111, 4)
        bits.append(run: (16 << 20) - 1)
        bits.append(0b1110, 4)  // metadata with the reserved bit
        return bits.bytes
    }
}

/// The system's poller, which fails to watch sockets from a given call on.
final class RefusingPoller: Poller {
    private let poller: SystemPoller
    private var left: Int

    init(after count: Int) throws {
        poller = try SystemPoller()
        left = count
    }

    convenience init() throws { try self.init(after: 0) }

    var wakeUp: WakeUp { poller.wakeUp }

    func watch(_ socket: Int32, from old: SocketEvents, to new: SocketEvents) -> Int32 {
        guard !new.isEmpty else { return poller.watch(socket, from: old, to: new) }
        left -= 1
        return left < 0 ? ENOSPC : poller.watch(socket, from: old, to: new)
    }

    func forget(_ socket: Int32) { poller.forget(socket) }

    func wait(milliseconds: Int32, onWake: () -> Void, onEvent: (Int32, SocketEvents) -> Void) -> Bool {
        poller.wait(milliseconds: milliseconds, onWake: onWake, onEvent: onEvent)
    }
}

/// Records the events of a stream, and lets a test wait for them.
final class RecordingStreamObserver: StreamTransferObserver {
    struct Record: Sendable {
        var opening: TransferMetrics?
        var bytes = Data()
        var hasEndedReceiving = false
        var sent: Int64 = 0
        var completion: TransferCompletion?
        var completions = 0

        var isOpen: Bool { opening != nil }

        var failure: TransferFailure? {
            if case .transferFailed(let failure) = completion?.error as? CurlewError { failure } else { nil }
        }

        var isCancelled: Bool {
            if case .cancelled = completion?.error as? CurlewError { true } else { false }
        }

        var isInvalidated: Bool {
            if case .sessionInvalidated = completion?.error as? CurlewError { true } else { false }
        }
    }

    private let state = Lock(Record())
    private let onBytes: @Sendable (Int) -> ReceiveAction

    init(onBytes: @escaping @Sendable (Int) -> ReceiveAction = { _ in .proceed }) {
        self.onBytes = onBytes
    }

    /// Returns the record once it meets the condition, or the stream has completed.
    func record(when isMet: @Sendable (Record) -> Bool) async -> Record {
        while true {
            let record = state.withLock { $0 }
            if record.completion != nil || isMet(record) { return record }
            await Task.yield()
        }
    }

    func end() async -> Record { await record { $0.completion != nil } }

    func stream(_ id: Int, didOpen metrics: TransferMetrics) { state.withLock { $0.opening = metrics } }

    func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        state.withLock { $0.bytes.append(contentsOf: bytes) }
        return onBytes(bytes.count)
    }

    func streamDidEndReceiving(_ id: Int) { state.withLock { $0.hasEndedReceiving = true } }

    func stream(_ id: Int, didSend count: Int64) { state.withLock { $0.sent = count } }

    func stream(_ id: Int, didComplete completion: TransferCompletion) {
        state.withLock {
            $0.completion = completion
            $0.completions += 1
        }
    }
}

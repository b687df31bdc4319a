// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// The body of a request as an `InputStream`, for a class that loads the request: its reads block until bytes are available. Opening it again
/// has no effect, as for every stream.
final class BodyInputStream: InputStream {
    private struct State {
        var status = Stream.Status.notOpen
        var error: (any Error)?
    }

    private let body: any BodySource
    private let readable = DispatchSemaphore(value: 0)
    private let state = Lock(State())

    init(_ body: any BodySource) {
        self.body = body
        super.init(data: Data())
    }

    deinit {
        if state.withLock({ $0.status }) == .open { body.transferDidComplete() }
    }

    override var streamStatus: Stream.Status { state.withLock { $0.status } }
    override var streamError: (any Error)? { state.withLock { $0.error } }
    override var hasBytesAvailable: Bool { [.notOpen, .open].contains(streamStatus) }

    override func open() {
        let isFirst = state.withLock { state in
            defer { if state.status == .notOpen { state.status = .open } }
            return state.status == .notOpen
        }
        if isFirst { body.prepare { [readable] in readable.signal() } }
    }

    override func close() { end(.closed) }

    /// Blocks until bytes are available; returns 0 at the end of the body, −1 if it can't be read.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard maxLength > 0 else { return 0 }
        while true {
            switch streamStatus {
            case .open: break
            case .atEnd: return 0
            default: return -1
            }
            switch body.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: maxLength)) {
            case .bytes(let count): return count
            case .end: end(.atEnd)
            case .unavailable: readable.wait()
            case .failed(let error): end(.error, error)
            }
        }
    }

    /// Ends the stream, and a read that waits.
    private func end(_ status: Stream.Status, _ error: (any Error)? = nil) {
        let wasOpen = state.withLock { state in
            defer {
                if state.status != .closed { state.status = status }
                if state.error == nil { state.error = error }
            }
            return state.status == .open
        }
        if wasOpen { body.transferDidComplete() }
        readable.signal()
    }
}

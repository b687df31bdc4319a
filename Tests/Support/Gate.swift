// SPDX-License-Identifier: Apache-2.0

/// A latch that opens once: a route waits at it, a test sees who has come and opens it.
///
/// ```swift
/// let gate = Gate()
/// let server = try LoopbackServer { _, connection in
///     connection.wait(until: gate)
///     return .ok("done")
/// }
/// …
/// #expect(await gate.arrivals(2))
/// gate.open()
/// ```
public final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var arrived = 0
        // Readable for ever once the gate is open, so that `poll` can watch it beside a socket; made when first needed.
        var pipe: (reading: Int32, writing: Int32)?
    }

    private let state = Monitor(State())

    /// Makes a closed gate.
    public init() {}

    deinit {
        state.read { state in
            guard let pipe = state.pipe else { return }
            closeDescriptor(pipe.reading)
            closeDescriptor(pipe.writing)
        }
    }

    /// Whether it has been opened.
    public var isOpen: Bool { state.read { $0.isOpen } }

    /// How many have come to wait so far, those who have left included.
    public var arrived: Int { state.read { $0.arrived } }

    /// Opens the gate for all who wait and all who will come. Again does nothing.
    public func open() {
        state.update { state in
            guard !state.isOpen else { return }
            state.isOpen = true
            if let pipe = state.pipe { Self.signal(pipe.writing) }
        }
    }

    /// Counts as one that has come, and does not wait.
    public func arrive() {
        state.update { $0.arrived += 1 }
    }

    /// Waits for the gate to open; false if the time ran out first.
    ///
    /// Counts as an arrival. Routes use ``ServerConnection/wait(until:timeout:)``, which the server's `stop()` ends.
    @discardableResult
    public func wait(timeout: Duration = .seconds(30)) -> Bool {
        arrive()
        return state.wait(timeout: timeout) { $0.isOpen }
    }

    /// Waits for the gate to open; false if the time ran out first. Counts as an arrival.
    @discardableResult
    public func wait(timeout: Duration = .seconds(30)) async -> Bool {
        arrive()
        return await offThePool { self.state.wait(timeout: timeout) { $0.isOpen } }
    }

    /// Waits until `count` have come; false if the time ran out first.
    @discardableResult
    public func arrivals(_ count: Int = 1, timeout: Duration = .seconds(30)) -> Bool {
        state.wait(timeout: timeout) { $0.arrived >= count }
    }

    /// Waits until `count` have come; false if the time ran out first.
    @discardableResult
    public func arrivals(_ count: Int = 1, timeout: Duration = .seconds(30)) async -> Bool {
        await offThePool { self.state.wait(timeout: timeout) { $0.arrived >= count } }
    }

    /// Waits for the gate, or for the connection's end.
    func wait(on socket: ConnectedSocket, timeout: Duration) -> Bool {
        let pipe = state.update { state in
            state.arrived += 1
            if state.pipe == nil {
                state.pipe = Platform.makePipe()
                if state.isOpen, let pipe = state.pipe { Self.signal(pipe.writing) }
            }
            return state.pipe
        }
        // Without a descriptor to spare the wait works all the same, only the connection's end does not end it.
        guard let pipe else { return state.wait(timeout: timeout) { $0.isOpen } }
        _ = socket.stands(for: timeout, orUntilReadable: pipe.reading)
        return isOpen
    }

    private static func signal(_ descriptor: Int32) {
        var byte: UInt8 = 1
        _ = write(descriptor, &byte, 1)
    }
}

// SPDX-License-Identifier: Apache-2.0

/// A latch that opens once: routes wait for it, and a test observes the arrivals and opens it.
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
        // Permanently readable once the gate is open, so that `poll` can watch it together with a socket; created on first use.
        var pipe: (reading: Int32, writing: Int32)?
    }

    private let state = Monitor(State())

    /// Creates a closed gate.
    public init() {}

    deinit {
        state.read { state in
            guard let pipe = state.pipe else { return }
            closeDescriptor(pipe.reading)
            closeDescriptor(pipe.writing)
        }
    }

    /// Whether the gate is open.
    public var isOpen: Bool { state.read { $0.isOpen } }

    /// The number of arrivals so far, including those that have left.
    public var arrived: Int { state.read { $0.arrived } }

    /// Opens the gate for all present and future waiters. Further calls do nothing.
    public func open() {
        state.update { state in
            guard !state.isOpen else { return }
            state.isOpen = true
            if let pipe = state.pipe { Self.signal(pipe.writing) }
        }
    }

    /// Counts an arrival without waiting.
    public func arrive() {
        state.update { $0.arrived += 1 }
    }

    /// Waits for the gate to open. Returns false on timeout.
    ///
    /// Counts as an arrival. Routes use ``ServerConnection/wait(until:timeout:)``, which the server's `stop()` interrupts.
    @discardableResult
    public func wait(timeout: Duration = .seconds(30)) -> Bool {
        arrive()
        return state.wait(timeout: timeout) { $0.isOpen }
    }

    /// Waits for the gate to open. Returns false on timeout. Counts as an arrival.
    @discardableResult
    public func wait(timeout: Duration = .seconds(30)) async -> Bool {
        arrive()
        return await offThePool { self.state.wait(timeout: timeout) { $0.isOpen } }
    }

    /// Waits until there are `count` arrivals. Returns false on timeout.
    @discardableResult
    public func arrivals(_ count: Int = 1, timeout: Duration = .seconds(30)) -> Bool {
        state.wait(timeout: timeout) { $0.arrived >= count }
    }

    /// Waits until there are `count` arrivals. Returns false on timeout.
    @discardableResult
    public func arrivals(_ count: Int = 1, timeout: Duration = .seconds(30)) async -> Bool {
        await offThePool { self.state.wait(timeout: timeout) { $0.arrived >= count } }
    }

    /// Waits for the gate to open or the connection to end.
    package func wait(on socket: ConnectedSocket, timeout: Duration) -> Bool {
        let pipe = state.update { state in
            state.arrived += 1
            if state.pipe == nil {
                state.pipe = Platform.makePipe()
                if state.isOpen, let pipe = state.pipe { Self.signal(pipe.writing) }
            }
            return state.pipe
        }
        // Without a spare descriptor the wait still works, but the connection's end does not interrupt it.
        guard let pipe else { return state.wait(timeout: timeout) { $0.isOpen } }
        _ = socket.staysOpen(for: timeout, orUntilReadable: pipe.reading)
        return isOpen
    }

    private static func signal(_ descriptor: Int32) {
        var byte: UInt8 = 1
        _ = write(descriptor, &byte, 1)
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Pages that come at somebody's ticks, for as many as iterate it.
///
/// All of them get the same pages, each fetched once; who comes later gets those that follow. It ends behind the last page or, when the
/// ticks have ended, behind the page at hand, and throws what the request of a page fails with, or what the ticks throw. When nobody
/// iterates any longer, the request on its way is cancelled, and it is over.
public final class PaginatorConnection<Page: Sendable>: AsyncSequence, Sendable {
    /// A page.
    public typealias Element = Page
    /// Waits for pages.
    public typealias AsyncIterator = AsyncThrowingStream<Page, any Error>.Iterator

    private typealias Continuation = AsyncThrowingStream<Page, any Error>.Continuation

    private enum State {
        case idle
        case running(Task<Void, Never>?, [Int: Continuation])
        case finished((any Error)?)
    }

    private let state = Lock(State.idle)
    private let nextID = Lock(0)
    private let gate = TickGate()
    private let fetch: PageSequence<Page>.Fetch
    private let listen: @Sendable (TickGate) async -> Void

    init<Ticks: AsyncSequence & Sendable>(_ pages: PageSequence<Page>, _ ticks: Ticks) {
        fetch = pages.begin()
        listen = { gate in
            do {
                for try await _ in ticks { gate.tick() }
                gate.end(with: nil)
            } catch {
                gate.end(with: error)
            }
        }
    }

    /// Begins to receive pages, the first one if nobody did before.
    public func makeAsyncIterator() -> AsyncIterator {
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: Page.self, throwing: (any Error).self)
        let id = nextID.withLock { id in
            id += 1
            return id
        }
        // Weak: the continuation is kept here.
        continuation.onTermination = { [weak self] _ in self?.remove(id) }
        switch enter(id, continuation) {
        case .first: start()
        case .further: break
        // Behind the lock: the stream calls back when it ends.
        case .late(let error): continuation.finish(throwing: error)
        }
        return stream.makeAsyncIterator()
    }

    /// As what somebody comes.
    private enum Entry {
        case first, further
        case late((any Error)?)
    }

    private func enter(_ id: Int, _ continuation: Continuation) -> Entry {
        state.withLock { state in
            switch state {
            case .idle:
                state = .running(nil, [id: continuation])
                return .first
            case .running(let task, var continuations):
                continuations[id] = continuation
                state = .running(task, continuations)
                return .further
            case .finished(let error): return .late(error)
            }
        }
    }

    private func start() {
        let task = Task {
            let listening = Task { [listen, gate] in await listen(gate) }
            let end = await run()
            listening.cancel()
            finish(end)
        }
        let isAbandoned = state.withLock { state in
            guard case .running(_, let continuations) = state else { return false }
            state = .running(task, continuations)
            return continuations.isEmpty
        }
        if isAbandoned { task.cancel() }
    }

    private func run() async -> (any Error)? {
        do {
            while true {
                let (page, isLast) = try await fetch()
                // First: who has the page may tick at once.
                gate.open()
                for continuation in continuations { continuation.yield(page) }
                if isLast { return nil }
                guard try await gate.wait() else { return nil }
            }
        } catch {
            return error
        }
    }

    private var continuations: [Continuation] {
        state.withLock { state in
            guard case .running(_, let continuations) = state else { return [] }
            return continuations.sorted { $0.key < $1.key }.map(\.value)
        }
    }

    private func finish(_ error: (any Error)?) {
        let last = state.withLock { state -> [Continuation] in
            defer { state = .finished(error) }
            guard case .running(_, let continuations) = state else { return [] }
            return continuations.sorted { $0.key < $1.key }.map(\.value)
        }
        for continuation in last { continuation.finish(throwing: error) }
    }

    private func remove(_ id: Int) {
        let abandoned = state.withLock { state -> Task<Void, Never>? in
            guard case .running(let task, var continuations) = state, continuations.removeValue(forKey: id) != nil else { return nil }
            state = .running(task, continuations)
            return continuations.isEmpty ? task : nil
        }
        abandoned?.cancel()
    }
}

/// Lets one through for a tick; ticks that come while it is closed are lost.
private final class TickGate: Sendable {
    private enum State {
        /// A page is on its way.
        case closed
        /// A page is there, and nobody waits yet; whether a tick has come.
        case open(hasTicked: Bool)
        case waiting(CheckedContinuation<Bool, any Error>)
        /// No tick will come.
        case ended((any Error)?)
    }

    private let state = Lock(State.closed)

    func open() {
        state.withLock { state in
            if case .closed = state { state = .open(hasTicked: false) }
        }
    }

    func tick() {
        let waiting = state.withLock { state -> CheckedContinuation<Bool, any Error>? in
            switch state {
            case .closed, .ended: return nil
            case .open:
                state = .open(hasTicked: true)
                return nil
            case .waiting(let continuation):
                state = .closed
                return continuation
            }
        }
        waiting?.resume(returning: true)
    }

    func end(with error: (any Error)?) {
        let waiting = state.withLock { state -> CheckedContinuation<Bool, any Error>? in
            defer {
                // A tick that has come before the end still counts.
                if case .open(hasTicked: true) = state {} else { state = .ended(error) }
            }
            if case .waiting(let continuation) = state { return continuation }
            return nil
        }
        Self.resume(waiting, error)
    }

    /// Waits for a tick; `false` when none will come.
    func wait() async throws -> Bool {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enum Next { case wait, go, end((any Error)?) }
                let next = state.withLock { state -> Next in
                    switch state {
                    case .open(hasTicked: true):
                        state = .closed
                        return .go
                    case .ended(let error): return .end(error)
                    case .open, .closed, .waiting:
                        state = .waiting(continuation)
                        return .wait
                    }
                }
                switch next {
                case .wait: break
                case .go: continuation.resume(returning: true)
                case .end(let error): Self.resume(continuation, error)
                }
            }
        } onCancel: {
            end(with: CancellationError())
        }
    }

    private static func resume(_ continuation: CheckedContinuation<Bool, any Error>?, _ error: (any Error)?) {
        if let error { continuation?.resume(throwing: error) } else { continuation?.resume(returning: false) }
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// Pages fetched at the ticks of a sequence, shared by all iterators.
///
/// All iterators receive the same pages, each fetched once; one that is made later receives the pages that follow. The sequence ends after
/// the last page or, once the ticks have ended, after the current page; it throws the error of a failed page request, or of the ticks. When
/// the last iterator is released, the request in flight is cancelled and the connection is finished. A ``Deadline`` of the task that
/// connects bounds the pages' requests, one of a task that iterates does not.
public final class PaginatorConnection<Page: Sendable>: AsyncSequence, Sendable {
    /// A page.
    public typealias Element = Page
    /// Receives pages.
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
        let (pages, deadline) = (pages.begin(), Deadline.current)
        fetch = { try await Deadline.$current.withValue(deadline) { try await pages() } }
        listen = { gate in
            do {
                for try await _ in ticks { gate.tick() }
                gate.end(with: nil)
            } catch {
                gate.end(with: error)
            }
        }
    }

    /// Makes an iterator; the first one starts fetching.
    public func makeAsyncIterator() -> AsyncIterator {
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: Page.self, throwing: (any Error).self)
        let id = nextID.withLock { id in
            id += 1
            return id
        }
        // Weak, because this object owns the continuation.
        continuation.onTermination = { [weak self] _ in self?.remove(id) }
        switch register(id, continuation) {
        case .first: start()
        case .additional: break
        // Outside the lock: finishing the stream calls `onTermination`, which takes it.
        case .finished(let error): continuation.finish(throwing: error)
        }
        return stream.makeAsyncIterator()
    }

    /// The state in which a new iterator finds the connection.
    private enum Registration {
        case first, additional
        case finished((any Error)?)
    }

    private func register(_ id: Int, _ continuation: Continuation) -> Registration {
        state.withLock { state in
            switch state {
            case .idle:
                state = .running(nil, [id: continuation])
                return .first
            case .running(let task, var continuations):
                continuations[id] = continuation
                state = .running(task, continuations)
                return .additional
            case .finished(let error): return .finished(error)
            }
        }
    }

    private func start() {
        let task = SharedWork.task { [self] in
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
                // Opened first, because a consumer may tick as soon as it has the page.
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

/// Admits one fetch per tick; ticks that arrive while it is closed are dropped.
final class TickGate: Sendable {
    private enum State {
        /// A page is being fetched.
        case closed
        /// A page has arrived and the gate is not awaited yet; records whether a tick has arrived.
        case open(hasTicked: Bool)
        /// A tick has arrived that still counts, and no other will.
        case ticked(End)
        case waiting(CheckedContinuation<Bool, any Error>)
        /// No further tick will arrive.
        case ended(End)
    }

    private struct End {
        let error: (any Error)?
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
            case .closed, .ticked, .ended: return nil
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
            switch state {
            // A tick that arrived before the end still counts.
            case .open(hasTicked: true): state = .ticked(End(error: error))
            case .ticked, .ended: break
            case .open, .closed: state = .ended(End(error: error))
            case .waiting(let continuation):
                state = .ended(End(error: error))
                return continuation
            }
            return nil
        }
        Self.resume(waiting, error)
    }

    /// Waits for a tick; returns `false` if none will arrive.
    func wait() async throws -> Bool {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enum Action { case wait, proceed, end((any Error)?) }
                let action = state.withLock { state -> Action in
                    switch state {
                    case .open(hasTicked: true):
                        state = .closed
                        return .proceed
                    case .ticked(let end):
                        state = .ended(end)
                        return .proceed
                    case .ended(let end): return .end(end.error)
                    case .open, .closed, .waiting:
                        state = .waiting(continuation)
                        return .wait
                    }
                }
                switch action {
                case .wait: break
                case .proceed: continuation.resume(returning: true)
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

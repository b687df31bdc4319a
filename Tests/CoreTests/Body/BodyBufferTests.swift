// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct BodyBufferTests {
    private static func append(_ text: String, to buffer: BodyBuffer) -> Bool { append(Data(text.utf8), to: buffer) }

    private static func append(_ data: Data, to buffer: BodyBuffer) -> Bool {
        data.withUnsafeBytes { buffer.append($0) }
    }

    @Test("what came is read in order, together; then the end")
    func reads() async throws {
        let buffer = BodyBuffer {}
        #expect(Self.append("ab", to: buffer))
        #expect(Self.append("cd", to: buffer))
        #expect(try await buffer.next() == Data("abcd".utf8))
        buffer.finish(.success(()))
        buffer.finish(.failure(UserError()))
        #expect(try await buffer.next() == nil)
        #expect(try await buffer.next() == nil)
    }

    @Test("what came before a failure is read first")
    func failure() async throws {
        let buffer = BodyBuffer {}
        _ = Self.append("ab", to: buffer)
        buffer.finish(.failure(UserError()))
        #expect(try await buffer.next() == Data("ab".utf8))
        await #expect(throws: UserError()) { try await buffer.next() }
    }

    @Test("the head of a response whose body failed is returned however late it is asked for", arguments: [true, false])
    func headOfFailure(isEarly: Bool) async throws {
        let buffer = BodyBuffer {}
        let early = isEarly ? Task { try await buffer.head() } : nil
        await Task.yield()
        buffer.receive(ResponseHead(statusCode: 416))
        buffer.finish(.failure(UserError()))
        let head = if let early { try await early.value } else { try await buffer.head() }
        #expect(head?.statusCode == 416)
        await #expect(throws: UserError()) { try await buffer.next() }
    }

    @Test("a failure without a head is thrown in its place") func failureInPlaceOfHead() async throws {
        let buffer = BodyBuffer {}
        buffer.finish(.failure(UserError()))
        await #expect(throws: UserError()) { try await buffer.head() }
    }

    @Test("a head that is asked for while a retry is decided is that of the attempt that counts", arguments: [true, false])
    func headDuringRetry(isRetried: Bool) async throws {
        for _ in 0..<50 {
            let buffer = BodyBuffer {}
            buffer.receive(ResponseHead(statusCode: 503))
            #expect(buffer.holdForRetry())
            let reading = Task { try await buffer.head() }
            await Task.yield()
            if isRetried {
                buffer.restart()
                buffer.receive(ResponseHead(statusCode: 200))
                buffer.finish(.success(()))
            } else {
                buffer.finish(.failure(UserError()))
            }
            #expect(try await reading.value?.statusCode == (isRetried ? 200 : 503))
        }
    }

    @Test("a piece belongs to the attempt in which it came, and is put back only while that lasts") func putsBack() async throws {
        let buffer = BodyBuffer {}
        _ = Self.append("ab", to: buffer)
        #expect(try await buffer.next() == Data("ab".utf8))
        buffer.putBack(Data("b".utf8))
        _ = Self.append("c", to: buffer)
        let last = try #require(try await buffer.next())
        #expect(last == Data("bc".utf8))
        buffer.restart()
        #expect(buffer.restartsAtDelivery == 0)
        buffer.putBack(last)
        _ = Self.append("new", to: buffer)
        #expect(try await buffer.next() == Data("new".utf8))
        #expect(buffer.restartsAtDelivery == 1)
    }

    @Test("a full buffer asks for a pause, and calls back once when it is read")
    func backpressure() async throws {
        let resumed = Inbox<Void>()
        let buffer = BodyBuffer { resumed.put(()) }
        let half = Data(count: BodyBuffer.highWaterMark / 2)
        #expect(Self.append(half, to: buffer))
        #expect(!Self.append(half, to: buffer))
        #expect(resumed.all.isEmpty)
        #expect(try await buffer.next()?.count == BodyBuffer.highWaterMark)
        #expect(resumed.count == 1)
        #expect(Self.append(half, to: buffer))
    }

    @Test("dropping lets go of everything, and of who waits")
    func drops() async {
        let resumed = Inbox<Void>()
        let buffer = BodyBuffer { resumed.put(()) }
        #expect(!Self.append(Data(count: BodyBuffer.highWaterMark), to: buffer))
        buffer.drop()
        #expect(resumed.count == 1)
        #expect(Self.append(Data(count: BodyBuffer.highWaterMark), to: buffer))
        let other = BodyBuffer {}
        let reading = Task { try await other.next() }
        await Task.yield()
        other.drop()
        other.finish(.success(()))
        _ = await reading.result
    }

    @Test("a reader whose task is cancelled does not hang, and takes nothing with it")
    func cancelledReader() async throws {
        let buffer = BodyBuffer {}
        let reading = Task { try await buffer.next() }
        await Task.yield()
        reading.cancel()
        await #expect(throws: CancellationError.self) { try await reading.value }
        _ = Self.append("ab", to: buffer)
        #expect(try await buffer.next() == Data("ab".utf8))
    }

    @Test("a reader that never waits gives others a turn") func turns() async throws {
        let buffer = BodyBuffer {}
        let isOver = Lock(false)
        try await withTaskExecutorPreference(SerialTaskExecutor()) {
            async let other: Void = isOver.withLock { $0 = true }
            while !isOver.withLock({ $0 }) {
                _ = Self.append("a", to: buffer)
                let piece = try await buffer.next()
                #expect(piece == Data("a".utf8))
            }
            await other
        }
    }

    @Test("a reader that never waits ends when its task is cancelled") func cancelledWithoutWait() async {
        let buffer = BodyBuffer {}
        let hasBegun = Inbox<Void>()
        let reading = Task {
            while true {
                _ = Self.append("a", to: buffer)
                _ = try await buffer.next()
                if hasBegun.count == 0 { hasBegun.put(()) }
            }
        }
        #expect(await eventually { hasBegun.count > 0 })
        reading.cancel()
        await #expect(throws: CancellationError.self) { try await reading.value }
    }

    @Test("the end of a body is returned to a cancelled task as well") func endOfCancelled() async throws {
        let buffer = BodyBuffer {}
        buffer.finish(.success(()))
        let reading = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await buffer.next()
        }
        reading.cancel()
        #expect(try await reading.value == nil)
    }

    @Test("several readers: one gets the piece, the others an error or the next one; nobody hangs")
    func severalReaders() async {
        let buffer = BodyBuffer {}
        let pieces = Inbox<Data>()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { while let piece = try? await buffer.next() { pieces.put(piece) } }
            }
            for number in 0..<50 { _ = Self.append("\(number),", to: buffer) }
            buffer.finish(.success(()))
        }
        let rest = try? await buffer.next()
        let count = pieces.all.reduce(0) { $0 + $1.count } + (rest?.count ?? 0)
        #expect(count == (0..<50).map { "\($0),".utf8.count }.reduce(0, +))
    }

    @Test("a closure gets what was there first, then the rest, in order")
    func drains() async {
        let buffer = BodyBuffer {}
        let pieces = Inbox<Data>()
        let queue = DispatchQueue(label: "drain")
        _ = Self.append("a", to: buffer)
        buffer.drain(on: queue, to: BodyBuffer.taker { pieces.put($0) })
        for text in ["b", "c", "d"] { _ = Self.append(text, to: buffer) }
        queue.sync {}
        #expect(pieces.all.reduce(Data(), +) == Data("abcd".utf8))
        #expect(buffer.hasDrain)
        #expect(buffer.holdForRetry())
    }
}

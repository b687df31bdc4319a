// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct SequenceBodyTests {
    enum Local {
        @TaskLocal static var value = 0
    }

    private let readable = Inbox<Void>()

    private func body<S: AsyncSequence>(
        length: Int64? = nil, makesSequences: Bool = false, _ make: @escaping @Sendable () async throws -> S
    ) -> SequenceBody where S.Element: Collection, S.Element.Element == UInt8 {
        SequenceBody(MadeSequenceReader(make: make), length: length, makesSequences: makesSequences)
    }

    /// Reads until the body has ended or failed.
    private func readAll(_ body: SequenceBody, by size: Int = 1000) async -> (Data, (any Error)?) {
        var bytes = Data()
        while true {
            let before = readable.count
            let (result, piece) = Self.read(body, size)
            switch result {
            case .bytes: bytes += piece
            case .unavailable: _ = await readable.first(before + 1)
            case .end: return (bytes, nil)
            case .failed(let error): return (bytes, error)
            }
        }
    }

    private static func read(_ body: SequenceBody, _ size: Int = 1000) -> (BodyRead, Data) {
        var buffer = [UInt8](repeating: 0, count: size)
        let result = buffer.withUnsafeMutableBytes { body.read(into: $0) }
        guard case .bytes(let count) = result else { return (result, Data()) }
        return (result, Data(buffer[..<count]))
    }

    private func prepare(_ body: SequenceBody) { body.prepare { [readable] in readable.put(()) } }

    @Test("pieces of all sizes arrive in order, whatever they are read by", arguments: [1, 7, 1000, 100_000])
    func content(_ size: Int) async {
        let pieces = [0, 1, 3, 16_000, 500, 16_384, 0, 300_000, 2, 70_000].enumerated().map { index, count in
            GeneratedBody(seed: UInt64(index)).data(count: size == 1 ? count / 100 : count)
        }
        let body = body { AsyncStream(pieces: pieces) }
        prepare(body)
        let (bytes, error) = await readAll(body, by: size)
        #expect(bytes == pieces.reduce(Data(), +) && error == nil)
    }

    @Test("arrays, slices and reversed collections are pieces") func collections() async {
        let array = body { AsyncStream(pieces: [[UInt8]("ab".utf8), [UInt8]("c".utf8)]) }
        let slices = body { AsyncStream(pieces: [[UInt8]("xabx".utf8)[1...2], [UInt8]("c".utf8)[...]]) }
        let reversed = body { AsyncStream(pieces: [[UInt8]("cba".utf8).reversed() as ReversedCollection<[UInt8]>]) }
        for body in [array, slices, reversed] {
            prepare(body)
            #expect(await readAll(body).0 == Data("abc".utf8))
        }
    }

    @Test("the sequence is not read further while the buffer is full") func backpressure() async {
        let taken = Inbox<Void>()
        let body = body(makesSequences: true) {
            AsyncStream<Data> {
                taken.put(())
                return Data(count: 64 * 1024)
            }
        }
        prepare(body)
        // Four pieces fill the buffer; the fifth waits for room in the hands of the task.
        _ = await taken.first(5)
        var read = 0
        while read < 8 << 20 {
            let before = readable.count
            let (result, piece) = Self.read(body, 4096)
            read += piece.count
            if case .unavailable = result { _ = await readable.first(before + 1) }
            // So many are taken, or in the buffer, or in the hands of the task.
            #expect(taken.count * 64 * 1024 <= read + SequencePull.capacity + 64 * 1024)
        }
        body.transferDidComplete()
    }

    @Test("an error of the sequence is the body's") func error() async {
        let body = body {
            AsyncThrowingStream<Data, any Error> { continuation in
                continuation.yield(Data("abc".utf8))
                continuation.finish(throwing: UserError())
            }
        }
        prepare(body)
        #expect(await readAll(body).1 is UserError)
        #expect(!body.isRepeatable && !body.rewind())
    }

    @Test("a closure that throws fails the body") func closureError() async {
        let body = body(makesSequences: true) { () async throws -> AsyncStream<Data> in throw UserError() }
        prepare(body)
        #expect(await readAll(body).1 is UserError)
        #expect(body.isRepeatable)
    }

    @Test("the last announced byte is sent when the sequence has ended", arguments: [4, 5, 6])
    func length(_ length: Int64) async {
        let (stream, continuation) = AsyncStream.makeStream(of: Data.self)
        let body = body(length: length) { stream }
        #expect(body.length == length)
        prepare(body)
        continuation.yield(Data("abc".utf8))
        #expect(await eventually { Self.read(body).1 == Data("abc".utf8) })
        continuation.yield(Data("de".utf8))
        continuation.finish()
        let (rest, error) = await readAll(body)
        switch length {
        case 4: #expect((error as? BodyLengthMismatch)?.amount == .more)
        default: #expect(rest == Data("de".utf8) && error == nil)
        }
    }

    @Test("a sequence that gave nothing yet can be sent by another transfer, one that did can't") func once() async {
        let body = body { AsyncStream(pieces: [Data("abc".utf8)]) }
        #expect(body.isRepeatable)
        prepare(body)
        body.transferDidComplete()
        #expect(body.isRepeatable && body.rewind())
        prepare(body)
        #expect(await readAll(body).0 == Data("abc".utf8))
        #expect(!body.isRepeatable && !body.rewind())
        body.transferDidComplete()
        prepare(body)
        guard case .failed(CurlewError.redirectFailed(reason: .bodyNotRepeatable, in: _)) = Self.read(body).0 else {
            Issue.record("sent twice")
            return
        }
    }

    @Test("each transfer and each rewind makes a sequence; none is made for a rewind after the transfer") func made() async {
        let made = Inbox<Void>()
        let body = body(makesSequences: true) {
            made.put(())
            return AsyncStream(pieces: [Data("abc".utf8)])
        }
        for count in 1...2 {
            prepare(body)
            #expect(await readAll(body).0 == Data("abc".utf8))
            #expect(made.count == 2 * count - 1)
            #expect(body.rewind())
            #expect(await readAll(body).0 == Data("abc".utf8))
            #expect(made.count == 2 * count)
            body.transferDidComplete()
            #expect(body.rewind())
        }
        #expect(made.count == 4)
        body.finish()
        #expect(!body.isRepeatable)
    }

    @Test("the sequence ends with the transfer, the request, and the body", arguments: ["transfer", "request", "body"])
    func cancellation(_ ending: String) async {
        let ended = Inbox<Void>()
        // Only the reading holds the stream: it is terminated even if the task notices by itself that no more is needed.
        var body: SequenceBody? = body(makesSequences: true) {
            let (stream, continuation) = AsyncStream.makeStream(of: Data.self)
            continuation.onTermination = { _ in ended.put(()) }
            continuation.yield(Data("a".utf8))
            return stream
        }
        body.map { prepare($0) }
        #expect(await eventually { if let body, case .bytes = Self.read(body, 1).0 { true } else { false } })
        switch ending {
        case "transfer": body?.transferDidComplete()
        case "request": body?.finish()
        default: body = nil
        }
        _ = await ended.first(1)
        withExtendedLifetime(body) {}
    }

    @Test("a task that waits for room ends with the transfer") func cancelledWhileFull() async {
        let last = Inbox<Void>()
        final class Token: Sendable {
            let last: Inbox<Void>
            init(_ last: Inbox<Void>) { self.last = last }
            deinit { last.put(()) }
        }
        let body = body(makesSequences: true) { [last] in
            let token = Token(last)
            return AsyncStream<Data> { withExtendedLifetime(token) { Data(count: 300_000) } }
        }
        prepare(body)
        #expect(await eventually { if case .bytes = Self.read(body, 1).0 { true } else { false } })
        body.transferDidComplete()
        _ = await last.first(1)
    }

    @Test("sequences are read with the task-local values of the caller, also again") func taskLocals() async {
        let seen = Inbox<Int>()
        let body = Local.$value.withValue(7) {
            self.body(makesSequences: true) { () async throws -> AsyncStream<Data> in
                seen.put(Local.value)
                return AsyncStream<Data> {
                    seen.put(Local.value)
                    return nil
                }
            }
        }
        for _ in 0..<2 {
            prepare(body)
            _ = await readAll(body)
            body.transferDidComplete()
        }
        #expect(seen.all == [7, 7, 7, 7])
    }

    @Test("trailers are asked for at the end of the sequence") func trailers() async {
        let reader = MadeSequenceReader(make: { AsyncStream(pieces: [Data("abc".utf8)]) }, trailers: { ["X-Sum": "6"] })
        let body = SequenceBody(reader, makesSequences: true)
        #expect(body.hasTrailers && body.trailers.isEmpty)
        prepare(body)
        _ = await readAll(body)
        #expect(body.trailers == ["X-Sum": "6"])
    }

    @Test("a request that is never started leaves no task") func neverStarted() async {
        let manager = SessionManager(mock: .answering())
        manager.startRequestsImmediately = false
        let made = Inbox<Void>()
        let request = manager.upload(
            {
                made.put(())
                return AsyncStream(pieces: [Data()])
            }, to: "http://mock/")
        #expect(request.isRepeatable)
        request.cancel()
        #expect(isCancelled(await request.serializingData().response.error))
        #expect(!request.isRepeatable)
        #expect(made.count == 0)
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct StreamBodyTests {
    /// A stream that blocks until the test gives it something.
    private final class BlockingStream: InputStream {
        private let pieces: Lock<[Data?]>
        private let mayRead = DispatchSemaphore(value: 0)

        init(_ pieces: [Data?]) {
            self.pieces = Lock(pieces)
            super.init(data: Data())
        }

        func letRead() { mayRead.signal() }

        override func open() {}
        override func close() {}

        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
            mayRead.wait()
            guard let piece = pieces.withLock({ $0.isEmpty ? Data() : $0.removeFirst() }) else { return -1 }
            piece.copyBytes(to: buffer, count: piece.count)
            return piece.count
        }
    }

    private static func read(_ body: StreamBody) -> BodyRead {
        withUnsafeTemporaryAllocation(byteCount: 100, alignment: 1) { body.read(into: $0) }
    }

    private static func describe(_ read: BodyRead) -> String {
        switch read {
        case .bytes(let count): "\(count)"
        case .unavailable: "unavailable"
        case .end: "end"
        case .failed(let error): "failed \(type(of: error))"
        }
    }

    @Test("a stream that blocks is waited for without blocking")
    func blocking() async {
        let stream = BlockingStream([Data("abc".utf8), Data()])
        let body = StreamBody(stream)
        let readable = Inbox<Void>()
        #expect(body.rewind())
        body.prepare { readable.put(()) }
        #expect(!body.rewind())
        #expect(Self.describe(Self.read(body)) == "unavailable")
        stream.letRead()
        _ = await readable.first(1)
        #expect(Self.describe(Self.read(body)) == "3")
        stream.letRead()
        _ = await readable.first(2)
        #expect(Self.describe(Self.read(body)) == "end")
    }

    @Test("a stream that fails fails behind what it gave")
    func failing() async {
        let stream = BlockingStream([Data("abc".utf8), nil])
        let body = StreamBody(stream)
        let readable = Inbox<Void>()
        body.prepare { readable.put(()) }
        stream.letRead()
        stream.letRead()
        _ = await readable.first(2)
        #expect(Self.describe(Self.read(body)) == "3")
        #expect(Self.describe(Self.read(body)) == "failed CocoaError")
    }

    @Test("a second use is an error, also while the first still reads")
    func secondUse() async {
        let stream = BlockingStream([Data()])
        let body = StreamBody(stream)
        let readable = Inbox<Void>()
        body.prepare { readable.put(()) }
        body.prepare { readable.put(()) }
        stream.letRead()
        _ = await readable.first(1)
        #expect(Self.describe(Self.read(body)) == "failed CurlewError")
    }

    @Test("what the stream fails with ends the request")
    func endsRequest() async {
        let manager = SessionManager(mock: MockTransport { _ in .response(readsBody: true) })
        let stream = BlockingStream([Data("abc".utf8), nil])
        stream.letRead()
        stream.letRead()
        #expect(await manager.upload(stream, to: "http://mock/").serializingData().response.error is CocoaError)
    }
}

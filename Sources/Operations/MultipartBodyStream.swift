// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// A multipart form as the body of an operation's request, with a bandwidth to keep to.
public final class StreamingMultipartFormData: MultipartFormData {
    /// The packet size and the delay that AFNetworking recommends for third-generation mobile networks: 16 KiB each 0.2 seconds.
    public static let suggestedThrottle3G: (packetSize: Int, delay: Duration) = (16 * 1024, .milliseconds(200))

    private(set) var throttle: MultipartBodyStream.Throttle?

    /// Sends the body in packets of so many bytes at the most, with a delay behind each. Without it as fast as it goes.
    ///
    /// - Parameters:
    ///   - packetSize: at least 1; less counts as 1.
    ///   - delay: less than nothing counts as nothing.
    public func throttleBandwidth(packetSize: Int, delay: Duration) {
        throttle = MultipartBodyStream.Throttle(packetSize: max(1, packetSize), delay: max(delay, .zero))
    }

    /// Appends a file under its own name; its type follows from the name's extension, by `/etc/mime.types` or a built-in table.
    ///
    /// Without an extension, and with one that neither knows, it is `application/octet-stream`.
    public override func append(_ fileURL: URL, withName name: String) {
        guard fileURL.pathExtension.isEmpty, !fileURL.lastPathComponent.isEmpty else { return super.append(fileURL, withName: name) }
        append(fileURL, withName: name, fileName: fileURL.lastPathComponent, mimeType: "application/octet-stream")
    }

    /// Appends a part with header fields of one's own.
    public func appendPart(headers: HTTPHeaders, body: Data) {
        append(InputStream(data: body), withLength: UInt64(body.count), headers: headers)
    }

    /// The body as a stream with its exact length; `nil` of a form to which nothing was appended.
    ///
    /// A body of more than `limit` bytes is written to a file in `directory`, which goes with the last copy of the stream.
    func bodyStream(limit: UInt64 = 10_000_000, directory: URL) throws -> MultipartBodyStream? {
        guard !isEmpty else { return nil }
        guard contentLength > limit else { return try MultipartBodyStream(.data(encode()), throttle: throttle) }
        let file = directory.appendingPathComponent("curlew-\(UUID().uuidString).multipart")
        try writeEncodedData(to: file)
        return try MultipartBodyStream(.file(MultipartBodyStream.TemporaryFile(file)), throttle: throttle)
    }
}

/// An encoded form to be read as a stream, which can be copied and so be sent again.
public final class MultipartBodyStream: InputStream {
    struct Throttle: Sendable {
        let packetSize: Int
        let delay: Duration
    }

    /// Goes with its last reference.
    final class TemporaryFile: Sendable {
        let url: URL

        init(_ url: URL) { self.url = url }

        deinit { try? FileManager.default.removeItem(at: url) }
    }

    enum Source: Sendable {
        case data(Data)
        case file(TemporaryFile)
    }

    private struct State {
        var status = Stream.Status.notOpen
        var position = 0
        var handle: FileHandle?
        var error: (any Error)?
    }

    private let source: Source
    private let throttle: Throttle?
    /// How many bytes it gives.
    public let length: Int64
    private let state = Lock(State())

    init(_ source: Source, throttle: Throttle?) throws {
        self.source = source
        self.throttle = throttle
        switch source {
        case .data(let data): length = Int64(data.count)
        case .file(let file):
            let attributes = try FileManager.default.attributesOfItem(atPath: file.url.path)
            length = (attributes[.size] as? NSNumber)?.int64Value ?? 0
        }
        super.init(data: Data())
    }

    private init(copyOf other: MultipartBodyStream) {
        (source, throttle, length) = (other.source, other.throttle, other.length)
        super.init(data: Data())
    }

    /// Another stream of the same bytes, from their beginning.
    public func makeCopy() -> MultipartBodyStream { MultipartBodyStream(copyOf: self) }

    /// All its bytes, unless they lie in a file.
    var dataInMemory: Data? {
        if case .data(let data) = source { data } else { nil }
    }

    /// Makes it ready to be read.
    public override func open() {
        state.withLock { state in
            guard state.status == .notOpen else { return }
            state.status = .open
            guard case .file(let file) = source else { return }
            do {
                state.handle = try FileHandle(forReadingFrom: file.url)
            } catch {
                (state.error, state.status) = (error, .error)
            }
        }
    }

    /// Ends it.
    public override func close() {
        state.withLock { state in
            try? state.handle?.close()
            state.handle = nil
            state.status = .closed
        }
    }

    /// How it stands.
    public override var streamStatus: Stream.Status { state.withLock { $0.status } }

    /// Why it could not be read.
    public override var streamError: (any Error)? { state.withLock { $0.error } }

    /// Whether there may be more to read.
    public override var hasBytesAvailable: Bool { streamStatus == .open }

    /// Reads a packet, behind the delay if there is one; 0 at the end, −1 when it is not open or can't be read.
    public override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard maxLength > 0 else { return streamStatus == .open ? 0 : -1 }
        if let throttle, state.withLock({ $0.position }) > 0 { Thread.sleep(forTimeInterval: throttle.delay.timeInterval) }
        let limit = min(maxLength, throttle?.packetSize ?? .max)
        return state.withLock { state in
            if state.status == .atEnd { return 0 }
            guard state.status == .open else { return -1 }
            do {
                let piece = try piece(limit, &state)
                piece.copyBytes(to: buffer, count: piece.count)
                state.position += piece.count
                if piece.isEmpty { state.status = .atEnd }
                return piece.count
            } catch {
                (state.error, state.status) = (error, .error)
                return -1
            }
        }
    }

    private func piece(_ limit: Int, _ state: inout State) throws -> Data {
        switch source {
        case .data(let data): data.dropFirst(state.position).prefix(limit)
        case .file: try state.handle?.read(upToCount: limit) ?? Data()
        }
    }

    /// There is none: the bytes are not in one piece.
    public override func getBuffer(_ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>)
        -> Bool
    {
        false
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

/// A multipart form that is the body of an operation's request, with an optional bandwidth limit.
public final class StreamingMultipartFormData: MultipartFormData {
    /// The packet size and delay that AFNetworking recommends for 3G networks: 16 KiB every 0.2 seconds.
    public static let suggestedThrottle3G: (packetSize: Int, delay: Duration) = (16 * 1024, .milliseconds(200))

    private(set) var throttle: MultipartBodyStream.Throttle?

    /// Sends the body in packets of at most `packetSize` bytes, with a delay after each. Without this call the body is sent without a
    /// limit.
    ///
    /// - Parameters:
    ///   - packetSize: in bytes; clamped to at least 1.
    ///   - delay: clamped to at least zero.
    public func throttleBandwidth(packetSize: Int, delay: Duration) {
        throttle = MultipartBodyStream.Throttle(packetSize: max(1, packetSize), delay: max(delay, .zero))
    }

    /// Appends a file under its own name; its type is derived from the extension, from `/etc/mime.types` or a built-in table.
    ///
    /// `application/octet-stream` without an extension, or with an unknown one.
    public override func append(_ fileURL: URL, withName name: String) {
        guard fileURL.pathExtension.isEmpty, !fileURL.lastPathComponent.isEmpty else { return super.append(fileURL, withName: name) }
        append(fileURL, withName: name, fileName: fileURL.lastPathComponent, mimeType: "application/octet-stream")
    }

    /// Appends a part with custom header fields.
    public func appendPart(headers: HTTPHeaders, body: Data) {
        append(InputStream(data: body), withLength: UInt64(body.count), headers: headers)
    }

    /// Returns the body as a stream with its exact length; `nil` if nothing was appended to the form.
    ///
    /// A body of more than `limit` bytes is written to a file in `directory`, which is removed with the last copy of the stream.
    func bodyStream(limit: UInt64 = 10_000_000, directory: URL) throws -> MultipartBodyStream? {
        guard !isEmpty else { return nil }
        guard contentLength > limit else { return try MultipartBodyStream(.data(encode()), throttle: throttle) }
        let file = directory.appendingPathComponent("curlew-\(UUID().uuidString).multipart")
        try writeEncodedData(to: file, permissions: 0o600)
        return try MultipartBodyStream(.file(TemporaryFile(file)), throttle: throttle)
    }
}

/// An encoded form as a stream, which can be copied and thereby sent again.
final class MultipartBodyStream: InputStream {
    struct Throttle: Sendable {
        let packetSize: Int
        let delay: Duration
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
    /// The number of bytes in the stream.
    let length: Int64
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

    /// Returns another stream of the same bytes, from their start.
    func makeCopy() -> MultipartBodyStream { MultipartBodyStream(copyOf: self) }

    /// All bytes; `nil` if they are in a file.
    var dataInMemory: Data? {
        if case .data(let data) = source { data } else { nil }
    }

    /// Opens the stream for reading.
    override func open() {
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

    /// Closes the stream.
    override func close() {
        state.withLock { state in
            try? state.handle?.close()
            state.handle = nil
            state.status = .closed
        }
    }

    /// The stream's status.
    override var streamStatus: Stream.Status { state.withLock { $0.status } }

    /// Why reading failed; `nil` if it has not.
    override var streamError: (any Error)? { state.withLock { $0.error } }

    /// Whether there may be more to read.
    override var hasBytesAvailable: Bool { streamStatus == .open }

    /// Reads a packet, sleeping for the delay first if there is one; returns 0 at the end, −1 if the stream is not open or reading failed.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard maxLength > 0 else { return streamStatus == .open ? 0 : -1 }
        if let throttle, state.withLock({ $0.position }) > 0 { Thread.sleep(forTimeInterval: throttle.delay.seconds) }
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

    /// Returns `false`: the bytes are not in one contiguous buffer.
    override func getBuffer(_ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>)
        -> Bool
    {
        false
    }
}

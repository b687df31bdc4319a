// SPDX-License-Identifier: Apache-2.0
import AsyncHTTPClient
import BenchSupport
import Foundation
import NIOCore
import NIOFoundationCompat
import NIOSSL

/// async-http-client, written as its users write it.
struct Client: BenchClient {
    private let options: Options
    private let client: HTTPClient
    private let timeout = TimeAmount.seconds(60)

    init(_ options: Options) throws {
        self.options = options
        var configuration = HTTPClient.Configuration()
        if let caFile = options.caFile {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(caFile)
            configuration.tlsConfiguration = tls
        }
        configuration.httpVersion = options.usesHTTP2 ? .automatic : .http1Only
        // 8 by default: more in flight would measure the queue.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit =
            max(options.inFlight, (options.beside?.waiting ?? 0) + options.inFlight)
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    func get(_ url: String) async throws -> Int {
        try await body(url).readableBytes
    }

    func decode(_ url: String) async throws -> Int {
        let body = try await body(url)
        if options.style == .object { return try JSONDecoder().decode(Profile.self, from: Data(buffer: body)).id }
        return try JSONDecoder().decode([Item].self, from: Data(buffer: body)).count
    }

    private func body(_ url: String) async throws -> ByteBuffer {
        var request = HTTPClientRequest(url: url)
        if options.isCold { request.headers.add(name: "Connection", value: "close") }
        let response = try await client.execute(request, timeout: timeout)
        guard response.status == .ok else { throw BenchFailure("status \(response.status)") }
        return try await response.body.collect(upTo: 1 << 20)
    }

    func download(_ url: String, to path: String) async throws {
        let delegate = try FileDownloadDelegate(path: path)
        _ = try await client.execute(request: HTTPClient.Request(url: url), delegate: delegate).get()
    }

    func upload(_ path: String, to url: String) async throws {
        var request = HTTPClientRequest(url: url)
        request.method = .PUT
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        let length = try Int64(file.seekToEnd())
        try file.seek(toOffset: 0)
        request.body = .stream(FilePieces(descriptor: file.fileDescriptor), length: .known(length))
        let response = try await client.execute(request, timeout: timeout)
        guard (200..<300).contains(response.status.code) else { throw BenchFailure("status \(response.status)") }
        _ = try await response.body.collect(upTo: 1 << 20)
        try file.close()
    }

    func shutdown() async throws { try await client.shutdown() }
}

/// A file in pieces of 256 KiB.
private struct FilePieces: AsyncSequence, Sendable {
    let descriptor: Int32

    struct AsyncIterator: AsyncIteratorProtocol {
        let descriptor: Int32

        mutating func next() async throws -> ByteBuffer? {
            var buffer = ByteBufferAllocator().buffer(capacity: 256 * 1024)
            let count = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: 256 * 1024) { read(descriptor, $0.baseAddress, $0.count) }
            guard count >= 0 else { throw BenchFailure("read: \(errno)") }
            return count == 0 ? nil : buffer
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(descriptor: descriptor) }
}

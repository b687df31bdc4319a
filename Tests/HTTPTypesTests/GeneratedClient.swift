// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
import CurlewHTTPTypes
import CurlewTestSupport

// What OpenAPIRuntime declares, as far as a transport needs it, in its shape: that package is not a dependency.

/// The transport of a generated client.
protocol ClientTransport: Sendable {
    func send(
        _ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String
    ) async throws -> (HTTPResponse, HTTPBody?)
}

/// A body of known or unknown length, in pieces.
final class HTTPBody: AsyncSequence, Sendable {
    typealias Element = ArraySlice<UInt8>

    enum Length: Sendable, Equatable {
        case unknown
        case known(Int64)
    }

    struct Iterator: AsyncIteratorProtocol {
        let produceNext: () async throws -> Element?

        mutating func next() async throws -> Element? { try await produceNext() }
    }

    let length: Length
    private let makeIterator: @Sendable () -> Iterator

    init<Bytes: AsyncSequence & Sendable>(_ sequence: Bytes, length: Length) where Bytes.Element == ArraySlice<UInt8> {
        self.length = length
        makeIterator = {
            var iterator = sequence.makeAsyncIterator()
            return Iterator { try await iterator.next() }
        }
    }

    convenience init(_ string: String) {
        let bytes = ArraySlice(string.utf8)
        self.init(AsyncStream([bytes].makeIterator), length: .known(Int64(bytes.count)))
    }

    func makeAsyncIterator() -> Iterator { makeIterator() }
}

extension AsyncStream<ArraySlice<UInt8>> {
    fileprivate init(_ makeIterator: () -> IndexingIterator<[Element]>) {
        let (stream, continuation) = Self.makeStream()
        var iterator = makeIterator()
        while let element = iterator.next() { continuation.yield(element) }
        continuation.finish()
        self = stream
    }
}

/// A body is longer than allowed.
struct BodyTooLong: Error {}

extension Data {
    init(collecting body: HTTPBody, upTo limit: Int) async throws {
        self.init()
        for try await piece in body {
            guard count + piece.count <= limit else { throw BodyTooLong() }
            append(contentsOf: piece)
        }
    }
}

// snippet: transport
struct CurlewClientTransport: ClientTransport {
    let manager: SessionManager

    func send(
        _ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String
    ) async throws -> (HTTPResponse, HTTPBody?) {
        let options = RequestOptions(name: operationID)
        let (response, received) =
            if let body {
                try await manager.streamResponse(to: request, body: body, relativeTo: baseURL, options: options)
            } else {
                try await manager.streamResponse(to: request, relativeTo: baseURL, options: options)
            }
        return (response, HTTPBody(received.map { ArraySlice($0) }, length: .unknown))
    }
}
// end
#endif

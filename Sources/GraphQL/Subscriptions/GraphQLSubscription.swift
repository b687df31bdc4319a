// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// The events of a subscription, each a response with data, errors or both.
///
/// Each iterator is a subscription of its own, requested with its first event. The sequence ends when the server has completed it. Releasing
/// the iterator, or cancelling the task that iterates, ends the subscription on the server; the other ones on the connection continue.
///
/// A deadline bounds the time until the server has acknowledged the connection; from then on there is none.
public struct GraphQLSubscription<Value: Decodable & Sendable>: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = GraphQLResponse<Value>

    let client: GraphQLClient
    let request: GraphQLRequest

    /// Reads the events.
    public struct Iterator: AsyncIteratorProtocol {
        private enum Progress {
            case new
            case running(SubscriptionConnection.Handle)
            case over
        }

        let client: GraphQLClient
        let request: GraphQLRequest
        private var progress = Progress.new

        init(client: GraphQLClient, request: GraphQLRequest) {
            self.client = client
            self.request = request
        }

        /// Returns the next event; `nil` when the server has completed the subscription, and after an error.
        ///
        /// - Throws: ``GraphQLClientError``: ``GraphQLClientError/errors(_:)`` if the server refuses the operation. After
        ///   ``GraphQLClientError/undecodableData(error:errors:body:)`` and ``GraphQLClientError/invalidResponse(error:body:)``, which are about
        ///   one event, the next call continues. ``/CurlewHTTP/CurlewError`` and ``/CurlewWebSocket/WebSocketError`` for the connection;
        ///   ``/CurlewHTTP/CurlewError/cancelled`` if the task is cancelled.
        public mutating func next() async throws -> GraphQLResponse<Value>? {
            let message: Data
            do {
                guard let next = try await nextMessage() else {
                    progress = .over
                    return nil
                }
                message = next
            } catch {
                progress = .over
                throw error is CancellationError && Task.isCancelled ? CurlewError.cancelled : error
            }
            let event: NextMessage<Value>
            do { event = try client.configuration.decoder.decode(NextMessage<Value>.self, from: message) } catch {
                throw GraphQLClientError.invalidResponse(error: error, body: message)
            }
            return try event.payload.response(nil, of: message)
        }

        private mutating func nextMessage() async throws -> Data? {
            switch progress {
            case .over: return nil
            case .running(let handle): return try await handle.next()
            case .new:
                guard request.kind == .subscription || request.kind == .query else {
                    throw GraphQLClientError.invalidRequest(reason: .wrongKind)
                }
                let parameters = try GraphQLParameters(request, client.configuration.makeEncoder(), allowsUploads: false)
                let deadline = Deadline.earliest(client.configuration.options?.deadline)
                let handle = client.begin(try parameters.json())
                progress = .running(handle)
                try await handle.waitUntilRequested(by: deadline)
                return try await handle.next()
            }
        }
    }

    /// Creates an iterator, with a subscription of its own.
    public func makeAsyncIterator() -> Iterator { Iterator(client: client, request: request) }
}

/// An event as it is received.
private struct NextMessage<Value: Decodable & Sendable>: Decodable, Sendable {
    let payload: GraphQLBody<Value>
}

// SPDX-License-Identifier: Apache-2.0

extension ServerResponse {
    /// How a server goes wrong while it sends a response, whose head is sent whole. The numbers are those of body bytes sent before.
    public enum Misbehaviour: Sendable, Hashable {
        /// Ends the stream in the middle of the body; with TLS without close_notify.
        case cut(after: Int)
        /// Resets the connection (RST).
        case reset(after: Int)
        /// Sends nothing more until the client disconnects or the server stops.
        case stall(after: Int)
        /// Sends the body in pieces of so many bytes, with a pause before each.
        case slow(piece: Int, pause: Duration)
    }

    /// Returns the response with a misbehaviour.
    public func misbehaving(_ misbehaviour: Misbehaviour) -> ServerResponse {
        var response = self
        response.misbehaviour = misbehaviour
        return response
    }

    /// Returns the response with a header field added.
    public func header(_ name: String, _ value: String) -> ServerResponse {
        var response = self
        response.headers.append(ServerField(name, value))
        return response
    }

    /// Returns the response with a pause before it, which the end of the connection interrupts.
    public func delayed(by delay: Duration) -> ServerResponse {
        var response = self
        response.delay = delay
        return response
    }

    /// The first bytes of the body as they are sent, its chunked coding included.
    fileprivate func sentBody(atMost limit: Int) -> Data {
        switch body {
        case .none: return Data()
        case .data(let data): return data.prefix(limit)
        case .chunked(let pieces):
            let chunks = pieces.filter { !$0.isEmpty }.map { Data("\(String($0.count, radix: 16))\r\n".utf8) + $0 + Data("\r\n".utf8) }
            return (chunks.reduce(Data(), +) + Data("0\r\n\r\n".utf8)).prefix(limit)
        case .generated(let length, let seed, let offset):
            return GeneratedBody(seed: seed).data(offset: offset, count: Int(min(length, Int64(limit))))
        }
    }
}

extension ServerConnection {
    /// Sends a response with its misbehaviour.
    func send(_ response: ServerResponse, _ misbehaviour: ServerResponse.Misbehaviour, to method: String) throws {
        let hasBody = method != "HEAD" && response.mayHaveBody
        try send(raw: response.head(closes: !keepAlive))
        switch misbehaviour {
        case .cut(let count):
            if hasBody { try send(raw: response.sentBody(atMost: count)) }
            cut()
        case .reset(let count):
            if hasBody { try send(raw: response.sentBody(atMost: count)) }
            reset()
        case .stall(let count):
            if hasBody { try send(raw: response.sentBody(atMost: count)) }
            waitUntilClosed()
        case .slow(let size, let time):
            guard hasBody else { return }
            var rest = response.sentBody(atMost: .max)
            while !rest.isEmpty {
                guard pause(for: time) else { return close() }
                try send(raw: Data(rest.prefix(max(1, size))))
                rest = rest.dropFirst(max(1, size))
            }
        }
    }
}

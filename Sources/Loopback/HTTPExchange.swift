// SPDX-License-Identifier: Apache-2.0

/// Serves the requests of one connection, on its thread.
struct HTTPExchange {
    let connection: ServerConnection
    let socket: ConnectedSocket
    let journal: Monitor<RequestJournal>
    let bodies: @Sendable (ServerRequest) -> LoopbackServer.BodyHandling
    let route: LoopbackServer.Route

    /// Serves requests until either side closes the connection.
    func run() {
        let reader = RequestReader(socket: socket)
        var sequence = 0
        do {
            repeat {
                sequence += 1
                guard let head = try reader.readHead() else { return }
                try serve(ServerRequest(head: head, connection: connection.number, sequence: sequence), reader: reader)
            } while connection.keepAlive
        } catch let error as MalformedRequest {
            reject(ServerResponse(status: 400, body: .data(Data(error.reason.utf8))))
        } catch {
            // The client has disconnected, or the route asked for it: there is no one to report the error to.
        }
    }

    private func serve(_ head: ServerRequest, reader: RequestReader) throws {
        connection.keepAlive = head.wantsKeepAlive
        var request = head
        let framing = try BodyFraming(of: head)
        switch framing == .none ? .kept : bodies(head) {
        case .kept:
            try read(framing, of: &request, body: ReceivedBody(keeps: true), reader: reader)
            journal.update { $0.enter(request) }
            try respond(request)
        case .counted:
            try read(framing, of: &request, body: ReceivedBody(keeps: false), reader: reader)
            journal.update { $0.enter(request) }
            try respond(request)
        case .unread:
            journal.update { $0.enter(request) }
            connection.keepAlive = false
            try respond(request)
            connection.finishUnread()
        case .refused(let response):
            journal.update { $0.enter(request) }
            reject(response)
        }
    }

    private func read(_ framing: BodyFraming, of request: inout ServerRequest, body: ReceivedBody, reader: RequestReader) throws {
        var body = body
        if framing != .none, request.header("Expect")?.lowercased() == "100-continue" {
            try connection.send(raw: "HTTP/1.1 100 Continue\r\n\r\n")
        }
        switch framing {
        case .none: return
        case .length(let length): try reader.readBody(length: length, into: &body)
        case .chunked: request.trailers = try reader.readChunkedBody(into: &body)
        }
        request.body = body.data
        request.bodyLength = body.length
        request.bodyChecksum = body.checksum.value
    }

    private func respond(_ request: ServerRequest) throws {
        guard let response = try routed(request) else { return }
        if response.header("Connection")?.lowercased() == "close" { connection.keepAlive = false }
        try connection.send(response, to: request.method)
    }

    private func routed(_ request: ServerRequest) throws -> ServerResponse? {
        do {
            return try route(request, connection)
        } catch let error as SocketError {
            throw error
        } catch {
            return ServerResponse(status: 500, body: .data(Data("\(error)".utf8)))
        }
    }

    /// Responds without reading the rest of the client's data, and closes the connection.
    private func reject(_ response: ServerResponse) {
        connection.keepAlive = false
        guard (try? connection.send(response, to: "GET")) != nil else { return }
        connection.finishUnread()
    }
}

/// How a request's body is delimited (RFC 9112, section 6.3).
enum BodyFraming: Equatable {
    case none
    case length(Int64)
    case chunked

    init(of request: ServerRequest) throws {
        if let coding = request.header("Transfer-Encoding") {
            guard coding.lowercased() == "chunked" else { throw MalformedRequest(reason: "Transfer-Encoding: \(coding)") }
            self = .chunked
        } else if let text = request.header("Content-Length") {
            guard let length = Int64(text), length >= 0 else { throw MalformedRequest(reason: "Content-Length: \(text)") }
            self = length > 0 ? .length(length) : .none
        } else {
            self = .none
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport

/// A server of tus 1.0, or of the draft for HTTP, on 127.0.0.1 that keeps uploads in memory, stores what it receives at once, and goes
/// wrong on demand.
final class TusServer: Sendable {
    /// A request as it was received.
    struct Entry: Sendable {
        let method: String
        let path: String
        let headers: [ServerField]
        /// The body bytes that were received.
        var received: Int64 = 0

        func header(_ name: String) -> String? { headers.first { $0.name.lowercased() == name.lowercased() }?.value }
    }

    struct Upload: Sendable {
        let length: Int64
        var bytes = Data()
        /// The digest that the whole has to have, and whether one was asked for.
        var digest: ContentDigest?
        var wantsDigest = false
        /// Whether a request of the draft has completed it.
        var isComplete = false
    }

    struct Settings: Sendable {
        var version = "1.0.0"
        var extensions: String? = "creation,creation-with-upload,termination,checksum,expiration"
        var algorithms = "sha1,sha256"
        var maximum: Int64?
        /// The interop version of the draft that the server supports; `nil` for tus.
        var draft: Int?
        /// The draft's `Upload-Limit`.
        var limit: String?
        /// Whether the draft's server announces uploads by a 104.
        var announces = true
        /// The numbers of body bytes, of all requests together, after which a connection is cut, in order.
        var cuts: [Int64] = []
        /// Whether a cut is a reset, and not the end of the stream.
        var resets = false
        /// Responds in place of the server; `nil` to let it respond. With the number of the request of that method, from 1.
        var override: @Sendable (Entry, Int) -> ServerResponse? = { _, _ in nil }
        /// The `Location` of an upload by its path, asked for with each response that has one.
        var location: @Sendable (String) -> String = { $0 }
        /// Whether it reads nothing of the first body after its announcement, until the client is gone.
        var stallsAfterAnnouncement = false
        /// The largest body of a request of the draft, beyond which the response is 413.
        var largestBody: Int64?
        /// The numbers of the draft's requests with a body, from 1, whose bytes change on their way.
        var corrupted: Set<Int> = []
        /// Whether the draft's server compares the digest of the whole.
        var verifiesDigest = true
        /// Whether a response to an append does not say what the server has.
        var hidesOffset = false
        /// What is sent with each response.
        var fields: [ServerField] = []
        /// Is called with the number of body bytes of all requests so far.
        var onBytes: @Sendable (Int64) -> Void = { _ in }
    }

    struct State {
        var uploads: [String: Upload] = [:]
        var created = 0
        var entries: [Entry] = []
        var received: Int64 = 0
        var cuts: [Int64] = []
        /// The draft's requests with a body.
        var bodies = 0
    }

    private let listener: SocketListener
    private let state: Lock<State>

    init(_ settings: Settings = Settings()) throws {
        let state = Lock(State(cuts: settings.cuts))
        self.state = state
        listener = try SocketListener { socket, _ in try? Connection(socket: socket, settings: settings, state: state).serve() }
    }

    deinit { listener.stop(timeout: .seconds(10)) }

    func url(_ path: String = "/files") -> String { "http://127.0.0.1:\(listener.port)\(path)" }
    var entries: [Entry] { state.withLock { $0.entries } }
    /// The body bytes of all requests.
    var received: Int64 { state.withLock { $0.received } }
    var uploads: [String: Upload] { state.withLock { $0.uploads } }
    var openConnections: Int { listener.openConnections }
    /// Forgets all uploads, as if they had expired.
    func forget() { state.withLock { $0.uploads = [:] } }

    func methods() -> [String] { entries.map(\.method) }

    // MARK: Connections

    struct Cut: Error {}

    struct Connection {
        let socket: ConnectedSocket
        let settings: Settings
        let state: Lock<State>

        func serve() throws {
            let reader = RequestReader(socket: socket)
            while let head = try reader.readHead() {
                var entry = Entry(method: head.method, path: head.target, headers: head.headers)
                let number = state.withLock { state in
                    state.entries.append(entry)
                    return (index: state.entries.count - 1, ofMethod: state.entries.filter { $0.method == head.method }.count)
                }
                let length = entry.header("Content-Length").flatMap { Int64($0) } ?? 0
                if let response = settings.override(entry, number.ofMethod) {
                    try read(length, reader, number.index) { _ in }
                    try send(response, to: entry)
                    continue
                }
                let response =
                    try settings.draft == nil
                    ? respond(&entry) { take in try read(length, reader, number.index, take) }
                    : respondToDraft(entry) { take in try read(length, reader, number.index, take) }
                try send(response, to: entry)
            }
        }

        private func send(_ response: ServerResponse, to entry: Entry) throws {
            var fields = response.headers + settings.fields + [ServerField("Tus-Resumable", settings.version)]
            var body = Data()
            if case .data(let data) = response.body { body = data }
            if response.status != 204 { fields.append(ServerField("Content-Length", "\(body.count)")) }
            let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
            try socket.send(Data("HTTP/1.1 \(response.status) \r\n\(lines)\r\n".utf8) + (entry.method == "HEAD" ? Data() : body))
        }

        /// Reads a body in pieces, and cuts the connection in the middle of it if that is due.
        private func read(_ length: Int64, _ reader: RequestReader, _ entry: Int, _ take: (Data) -> Void) throws {
            var rest = length
            while rest > 0 {
                let (cut, total) = state.withLock { ($0.cuts.first, $0.received) }
                let piece = min(rest, 16 << 10, max(cut.map { $0 - total } ?? .max, 1))
                var body = ReceivedBody(keeps: true)
                do {
                    // Before the cut, after which the client asks at once what is stored.
                    defer {
                        take(body.data)
                        let total = state.withLock { state in
                            state.received += body.length
                            state.entries[entry].received += body.length
                            return state.received
                        }
                        settings.onBytes(total)
                    }
                    try reader.readBody(length: piece, into: &body)
                }
                rest -= piece
                if let cut, total + piece >= cut {
                    state.withLock { _ = $0.cuts.removeFirst() }
                    if settings.resets {
                        socket.prepareReset()
                    } else {
                        // What comes after a close would reset the connection, and the client then not read what was sent before.
                        socket.shutDownWriting()
                        socket.drain(timeout: .seconds(10))
                    }
                    throw Cut()
                }
            }
        }

        private func respond(_ entry: inout Entry, _ read: ((Data) -> Void) throws -> Void) throws -> ServerResponse {
            if entry.method == "OPTIONS" { return options() }
            guard entry.header("Tus-Resumable") == settings.version else {
                try read { _ in }
                return .status(412, headers: [ServerField("Tus-Version", settings.version)])
            }
            switch entry.method {
            case "POST": return try create(entry, read)
            case "HEAD":
                guard let upload = state.withLock({ $0.uploads[entry.path] }) else { return .status(404) }
                return .status(
                    200,
                    headers: [
                        ServerField("Upload-Offset", "\(upload.bytes.count)"), ServerField("Upload-Length", "\(upload.length)"),
                        ServerField("Cache-Control", "no-store"),
                    ])
            case "PATCH": return try append(entry, read)
            case "DELETE":
                return .status(state.withLock { $0.uploads.removeValue(forKey: entry.path) } == nil ? 404 : 204)
            default: return .status(405)
            }
        }

        private func options() -> ServerResponse {
            var fields = [ServerField("Tus-Version", settings.version), ServerField("Tus-Checksum-Algorithm", settings.algorithms)]
            if let extensions = settings.extensions { fields.append(ServerField("Tus-Extension", extensions)) }
            if let maximum = settings.maximum { fields.append(ServerField("Tus-Max-Size", "\(maximum)")) }
            return .status(204, headers: fields)
        }

        private func create(_ entry: Entry, _ read: ((Data) -> Void) throws -> Void) throws -> ServerResponse {
            guard let length = entry.header("Upload-Length").flatMap({ Int64($0) }) else { return .status(400) }
            let path = state.withLock { state in
                state.created += 1
                let path = "/files/\(state.created)"
                state.uploads[path] = Upload(length: length)
                return path
            }
            var fields = [ServerField("Location", settings.location(path))]
            try read { data in state.withLock { $0.uploads[path]?.bytes.append(data) } }
            if entry.header("Content-Type") != nil {
                fields.append(ServerField("Upload-Offset", "\(state.withLock { $0.uploads[path]?.bytes.count ?? 0 })"))
            }
            return .status(201, headers: fields)
        }

        private func append(_ entry: Entry, _ read: ((Data) -> Void) throws -> Void) throws -> ServerResponse {
            guard entry.header("Content-Type") == "application/offset+octet-stream" else { return .status(415) }
            guard let upload = state.withLock({ $0.uploads[entry.path] }) else {
                try read { _ in }
                return .status(404)
            }
            guard entry.header("Upload-Offset") == "\(upload.bytes.count)" else {
                try read { _ in }
                return .status(409)
            }
            if let checksum = entry.header("Upload-Checksum") {
                // As the protocol demands it, nothing of a chunk counts that does not have its checksum.
                var chunk = Data()
                try read { chunk.append($0) }
                let words = checksum.split(separator: " ").map(String.init)
                let digest = words[0] == "sha1" ? SHA1.digest(of: chunk) : SHA256.digest(of: chunk)
                guard words.count == 2, Data(digest).base64EncodedString() == words[1] else { return .status(460) }
                state.withLock { $0.uploads[entry.path]?.bytes.append(chunk) }
            } else {
                try read { data in state.withLock { $0.uploads[entry.path]?.bytes.append(data) } }
            }
            let offset = state.withLock { $0.uploads[entry.path]?.bytes.count ?? 0 }
            return .status(204, headers: settings.hidesOffset ? [] : [ServerField("Upload-Offset", "\(offset)")])
        }
    }
}

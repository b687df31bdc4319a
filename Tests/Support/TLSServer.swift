// SPDX-License-Identifier: Apache-2.0

/// An HTTPS server on 127.0.0.1 that reports how much of a request has reached it. Ends with its last reference.
///
/// `/to/URL` redirects to the URL; `/unframed` sends a body delimited by close, with close_notify or, for `/unframed/cut`, without it;
/// everything else responds with the number of the connection and whether its TLS session was resumed, as `2 new`.
public final class TLSServer: Sendable {
    /// What was received over a connection, reported once it is closed.
    public struct Connection: Equatable, Sendable {
        /// The number of decrypted bytes.
        public let bytes: Int
        /// The number of requests.
        public let requests: Int
        /// Whether the client has presented a certificate.
        public let hasCertificate: Bool

        /// What is expected.
        public init(bytes: Int, requests: Int, hasCertificate: Bool = false) {
            (self.bytes, self.requests, self.hasCertificate) = (bytes, requests, hasCertificate)
        }
    }

    /// What the server does.
    public struct Options: Encodable, Sendable {
        /// The file of the certificates to send.
        public var chain: String
        /// The file of the key of the first of them.
        public var key: String
        /// Files with chain and key, of which each connection gets the next, in place of the former two.
        public var chains: [String] = []
        /// The authority required of client certificates; `nil` for no client authentication.
        public var clientAuthority: String?
        /// Whether client certificates are requested only.
        public var acceptsAnyClient = false
        /// The highest version of TLS, "1.2" for that one; `nil` for no limit.
        public var maximumVersion: String?
        /// Whether each connection is closed after its first response.
        public var closes = false
        /// The port to which decrypted data is forwarded; `nil` for none.
        public var relayPort: Int?
        /// Whether the server is a tunnelling proxy without TLS.
        public var isProxy = false
    }

    /// The port on localhost.
    public let port: Int
    private let process: ChildProcess

    /// The URL of the root.
    public var url: String { "https://localhost:\(port)" }

    /// Starts a server that sends the chain with this name.
    public convenience init(_ authority: TLSAuthority, _ name: String, _ change: (inout Options) -> Void = { _ in }) async throws {
        let key = name == "appended" ? "good" : name
        var options = Options(chain: authority.path("\(name).chain"), key: authority.path("\(key).key"))
        change(&options)
        try await self.init(options)
    }

    private init(_ options: Options) async throws {
        process = try ChildProcess("python3", "-c", Self.script, String(decoding: JSONEncoder().encode(options), as: UTF8.self))
        guard let line = await process.readLine(), let port = Int(line) else { throw TestError("the TLS server did not start") }
        self.port = port
    }

    deinit {
        process.terminate()
    }

    /// Starts a tunnelling proxy that counts the bytes passing through.
    public static func proxy() async throws -> TLSServer {
        try await TLSServer(Options(chain: "", key: "", isProxy: true))
    }

    /// Returns what was received over the next connection to be closed.
    public func nextConnection() async -> Connection? {
        let numbers = await process.readLine()?.split(separator: " ").compactMap { Int($0) } ?? []
        return numbers.count == 3 ? Connection(bytes: numbers[0], requests: numbers[1], hasCertificate: numbers[2] == 1) : nil
    }

    private static let script = """
        import json, select, socket, ssl, sys, threading, urllib.parse
        o = json.loads(sys.argv[1])
        if not o["isProxy"]:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(o["chain"], o["key"])
            if o.get("clientAuthority"):
                context.verify_mode = ssl.CERT_OPTIONAL if o["acceptsAnyClient"] else ssl.CERT_REQUIRED
                context.load_verify_locations(o["clientAuthority"])
            if o.get("maximumVersion") == "1.2":
                context.maximum_version = ssl.TLSVersion.TLSv1_2

        def next_context(number):
            if not o["chains"]:
                return context
            own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            own.load_cert_chain(o["chains"][(number - 1) % len(o["chains"])])
            return own

        def answer(c, number, head):
            path = head.split(b" ")[1].decode()
            extra = "Connection: close\\r\\n" if o["closes"] else ""
            if path.startswith("/to/"):
                c.sendall(("HTTP/1.1 302 Found\\r\\n%sLocation: %s\\r\\nContent-Length: 0\\r\\n\\r\\n"
                           % (extra, urllib.parse.unquote(path[4:]))).encode())
            elif path.startswith("/unframed"):
                c.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\nbody")
                if path == "/unframed":
                    c.unwrap()
                c.close()
            else:
                body = "%d %s" % (number, "resumed" if c.session_reused else "new")
                c.sendall(("HTTP/1.1 200 OK\\r\\n%sContent-Length: %d\\r\\n\\r\\n%s" % (extra, len(body), body)).encode())

        def serve(c, number):
            count = requests = presented = 0
            try:
                c = next_context(number).wrap_socket(c, server_side=True)
                presented = 1 if c.getpeercert() else 0
                if o.get("relayPort"):
                    return relay(c, o["relayPort"])
                rest = b""
                while True:
                    data = c.recv(65536)
                    if not data:
                        break
                    count += len(data)
                    rest += data
                    while b"\\r\\n\\r\\n" in rest:
                        head, rest = rest.split(b"\\r\\n\\r\\n", 1)
                        requests += 1
                        answer(c, number, head)
                    if o["closes"] and requests:
                        break
            except (OSError, ValueError):
                pass
            c.close()
            print(count, requests, presented, flush=True)

        # By one thread: a TLS connection is not read and written by two at once.
        def relay(c, port):
            s = socket.create_connection(("127.0.0.1", port))
            while True:
                for a in [c] if c.pending() else select.select([c, s], [], [])[0]:
                    data = a.recv(65536)
                    if not data:
                        return
                    (s if a is c else c).sendall(data)

        def pipe(a, b, total):
            try:
                while True:
                    data = a.recv(65536)
                    if not data:
                        break
                    total[0] += len(data)
                    b.sendall(data)
                b.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        def tunnel(c, number):
            head = b""
            while b"\\r\\n\\r\\n" not in head:
                head += c.recv(65536)
            host, port = head.split(b" ")[1].decode().rsplit(":", 1)
            s = socket.create_connection(("127.0.0.1", int(port)))
            c.sendall(b"HTTP/1.1 200 Connected\\r\\n\\r\\n")
            total = [0]
            back = threading.Thread(target=pipe, args=(s, c, [0]), daemon=True)
            back.start()
            pipe(c, s, total)
            back.join()
            print(total[0], 1, 0, flush=True)

        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        print(listener.getsockname()[1], flush=True)
        number = 0
        while True:
            c = listener.accept()[0]
            number += 1
            c.settimeout(60)
            threading.Thread(target=tunnel if o["isProxy"] else serve, args=(c, number), daemon=True).start()
        """
}

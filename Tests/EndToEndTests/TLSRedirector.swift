// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport

/// An HTTPS server on localhost that redirects every path to one URL, which the nginx of `scripts/servers` does not do.
///
/// Runs `openssl s_server` with a self-signed certificate. It ends with the redirector, or after a minute at the latest.
final class TLSRedirector: Sendable {
    let port: Int
    let certificate: URL
    private let directory: TemporaryDirectory
    private let process: ChildProcess

    static var isAvailable: Bool { Servers.areRequired || ChildProcess.path(of: "openssl") != nil }

    init(to location: String) async throws {
        directory = try TemporaryDirectory()
        certificate = directory.file("certificate.pem")
        try directory.write(Data("HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n".utf8), to: "redirect")
        let script = """
            cd "$1" && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out certificate.pem \
                -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost >/dev/null 2>&1 &&
            exec timeout 60 openssl s_server -accept 127.0.0.1:0 -cert certificate.pem -key key.pem -HTTP 2>/dev/null
            """
        process = try ChildProcess("sh", "-c", script, "sh", directory.url.path)
        port = try await process.acceptedPort()
    }

    deinit {
        process.terminate()
    }

    var url: String { "https://localhost:\(port)/redirect" }
}

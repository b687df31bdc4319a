// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport

/// `openssl s_server`, which can staple; responds to every request with a page about its connection.
final class StaplingServer: Sendable {
    let port: Int
    private let process: ChildProcess

    /// - Parameter response: the file of the stapled response; `nil` for none.
    init(_ authority: TLSAuthority, _ name: String, response: String?) async throws {
        let arguments = ["s_server", "-accept", "localhost:0", "-www", "-key", authority.path("\(name).key"), "-cert"]
        let files = [authority.path("\(name).pem"), "-cert_chain", authority.path("intermediate.pem")]
        let staple = response.map { ["-status_file", authority.path($0)] } ?? []
        let script = #"exec timeout 60 openssl "$@" 2>/dev/null"#
        process = try ChildProcess("sh", ["-c", script, "sh"] + arguments + files + staple)
        port = try await process.acceptedPort()
    }

    deinit {
        process.terminate()
    }

    var url: String { "https://localhost:\(port)/" }
}

extension ChildProcess {
    /// Returns the port that `openssl s_server` reports once it listens.
    func acceptedPort() async throws -> Int {
        // "ACCEPT 127.0.0.1:40123"
        while let line = await readLine() {
            if line.hasPrefix("ACCEPT"), let port = line.split(separator: ":").last.flatMap({ Int($0) }) { return port }
        }
        throw TestError("openssl s_server did not start")
    }
}

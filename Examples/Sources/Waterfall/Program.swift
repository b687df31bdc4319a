// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHAR
import DemoServer

/// Records a session against a server with TLS as an HTTP Archive, and draws it: redirects, a sign-in, a retry, a slow body, and one that is cut.
///
///     waterfall [FOLDER]     with a folder, leaves session.har and session.html in it
@main
enum Program {
    static func main() async {
        do {
            let arguments = CommandLine.arguments.dropFirst()
            guard arguments.count < 2 else { throw Failure(description: "one folder at most") }
            if let folder = arguments.first {
                try await record(in: URL(fileURLWithPath: folder))
            } else {
                let directory = try TemporaryDirectory()
                try await record(in: directory.url)
            }
        } catch {
            FileHandle.standardError.write(Data("waterfall: \(error)\n".utf8))
            exit(1)
        }
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static func record(in folder: URL) async throws {
        let (tls, authority) = try ServerTLS.throwAway()
        let server = try LoopbackServer(tls: tls, routes: routes())
        defer { server.stop() }
        let recorder = try HARRecorder(file: folder.appendingPathComponent("session.har"))
        var configuration = SessionConfiguration()
        configuration.tls.certificateAuthorities = authority.certificate
        configuration.eventMonitors.append(recorder)
        configuration.maximumConnectionsPerHost = 3
        let manager = SessionManager(
            configuration: configuration, interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0.1))
        await send(with: manager, to: server)
        await manager.shutdown(gracePeriod: .seconds(5))
        recorder.close()
        if let error = recorder.error { throw error }

        let page = folder.appendingPathComponent("session.html")
        let archive = try Data(contentsOf: folder.appendingPathComponent("session.har"))
        try Waterfall(archive: archive).html.write(to: page, atomically: true, encoding: .utf8)
        let size = try FileManager.default.attributesOfItem(atPath: page.path)[.size] ?? 0
        say("\(recorder.count) exchanges: session.har has \(archive.count) bytes, session.html \(size)")
    }

    private static func send(with manager: SessionManager, to server: LoopbackServer) async {
        @Sendable func get(_ path: String, _ name: String? = nil) async {
            let request = manager.request(server.url(path), options: RequestOptions(name: name)).validate()
            _ = await request.authenticate(user: "ada", password: "lovelace").serializingData().response
        }
        await get("/users/7", "GET /users/{id}")
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await get("/report", "GET /report") }
            group.addTask { await get("/private?access_token=0123456789") }
            group.addTask { await get("/flaky") }
            for number in 1...3 { group.addTask { await get("/pages/\(number)") } }
        }
        await get("/cut")
        await get("/missing")
    }

    private static func routes() -> [ServerRoute] {
        let failures = Log<Bool>()
        return [
            .get("/users/{id}") { request, _ in
                try .json(["id": request.parameters["id"]]).delayed(by: .milliseconds(40))
            },
            .get("/report") { _, _ in .redirect(to: "/reports/2026").delayed(by: .milliseconds(20)) },
            .get("/reports/2026") { _, _ in
                .ok(Data(count: 60_000)).misbehaving(.slow(piece: 10_000, pause: .milliseconds(25)))
            },
            .get("/private") { request, _ in
                guard request.header("Authorization") != nil else {
                    return .status(401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"demo\"")])
                }
                return .ok("welcome").delayed(by: .milliseconds(30))
            },
            .get("/flaky") { _, _ in
                failures.append(true)
                return failures.count == 1 ? .status(503) : .ok("recovered").delayed(by: .milliseconds(15))
            },
            .get("/pages/{number}") { _, _ in .ok(Data(count: 2000)).delayed(by: .milliseconds(60)) },
            .get("/cut") { _, _ in .ok(Data(count: 1000)).misbehaving(.cut(after: 400)) },
        ]
    }

    private static func say(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    }
}

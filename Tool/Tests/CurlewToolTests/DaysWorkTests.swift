// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// The day's work that the documentation shows: each of its commands is run in a shell, at a terminal, and prints what stands there.
@Suite(.timeLimit(.minutes(2))) struct DaysWorkTests {
    private struct Step {
        let command: String
        var output: [String] = []
    }

    /// The commands of the article's transcripts, each with the lines that follow it.
    private static func steps() throws -> [Step] {
        let article = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/Curlew/Curlew.docc/TheCommand.md")
        var steps: [Step] = []
        var isInside = false
        for line in try String(contentsOf: article, encoding: .utf8).components(separatedBy: "\n") {
            if line.hasPrefix("```") {
                isInside = line == "```console"
            } else if isInside, line.hasPrefix("$ ") {
                steps.append(Step(command: String(line.dropFirst(2))))
            } else if isInside {
                steps[steps.count - 1].output.append(line)
            }
        }
        return steps
    }

    /// Lines without what differs from run to run: times, rates, bars, ports, and the words of libcurl's versions.
    private static func shape(_ text: String, port: Int) -> [String] {
        let rules = [
            (#"\b\#(port)\b"#, "3000"), ("from [^ ,]+", "from #"), (#"[0-9]+ bytes of head"#, "# bytes of head"),
            ("(transfer closed|end of response) with ([0-9]+) bytes (remaining to read|missing)", "$2 bytes missing"),
            (#"[0-9]+\.[0-9]+"#, "#"), ("[ █]+", " "), (" $", ""),
        ]
        return text.components(separatedBy: "\n").map { line in
            // Of a line that was drawn several times, the last.
            rules.reduce(line.components(separatedBy: "\u{1B}[K").last ?? "") {
                $0.replacingOccurrences(of: $1.0, with: $1.1, options: .regularExpression)
            }
        }
        // How often progress is drawn depends on the machine.
        .filter { !$0.isEmpty && !$0.hasPrefix("[#") && !$0.hasPrefix("[.") }
    }

    /// What a birdwatcher's service does: a sign-in that sets a cookie, without which all else is refused, pages, an upload, and a file
    /// whose transfer breaks in the middle once.
    private static func server() throws -> LoopbackServer {
        let isBroken = Lock(false)
        return try LoopbackServer { request, connection in
            if request.path == "/login" {
                guard request.body == Data("name=ada&password=numenius".utf8) else { return .status(403) }
                var response = ServerResponse.ok("{\"name\":\"Ada\",\"birds\":5}", type: "application/json")
                response.headers.append(ServerField("Set-Cookie", "sid=4711; Path=/; HttpOnly"))
                return response
            }
            if request.path == "/health" { return .ok("well") }
            guard request.header("Cookie") == "sid=4711" else { return .status(401) }
            switch (request.method, request.path) {
            case ("GET", "/birds"):
                let names = ["Curlew", "Dunlin", "Knot", "Redshank", "Whimbrel"]
                let first = (Int(request.query("page") ?? "1") ?? 1) * 2 - 2
                let birds = names.enumerated().dropFirst(first).prefix(2).map { #"{"id":\#($0 + 1),"name":"\#($1)"}"# }
                return .ok(#"{"birds":[\#(birds.joined(separator: ","))],"pages":3}"#, type: "application/json")
            case ("GET", "/birds/1"):
                return .ok(#"{"id":1,"name":"Curlew","latin":"Numenius arquata","length":55}"#, type: "application/json")
            case ("POST", "/birds/1/photos"):
                guard request.body.firstRange(of: Data("filename=\"shore.jpg\"".utf8)) != nil else { return .status(400) }
                var response = ServerResponse.ok(#"{"photo":12,"caption":"On the shore"}"#, type: "application/json")
                (response.status, response.reason) = (201, "Created")
                response.headers.append(ServerField("Location", "/birds/1/photos/12"))
                return response
            case ("GET", "/atlas.bin"):
                let isFirst = isBroken.withLock { isBroken in
                    defer { isBroken = true }
                    return !isBroken
                }
                guard isFirst else { return .generated(length: 1_000_000, etag: "\"1\"", for: request) }
                try connection.send(raw: "HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nETag: \"1\"\r\nContent-Length: 1000000\r\n\r\n")
                try connection.send(raw: GeneratedBody().data(count: 400_000))
                connection.close()
                return nil
            default: return .status(404)
            }
        }
    }

    @Test("each command of the article prints what stands below it") func transcript() async throws {
        let server = try Self.server()
        let folder = try TemporaryDirectory()
        let (home, work) = (folder.file("home"), folder.file("work"))
        for place in [home, work] { try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false) }
        try GeneratedBody().data(count: 3000).write(to: work.appendingPathComponent("shore.jpg"))
        let steps = try Self.steps()
        #expect(steps.count >= 8)
        var requests = 0
        for step in steps {
            let command = step.command.replacingOccurrences(of: ":3000/", with: ":\(server.port)/")
            let path = try ToolRun.executable().deletingLastPathComponent().path
            let run = try ToolRun(
                ["-c", "exec 2>&1; " + command],
                environment: ["PATH": "\(path):/usr/bin:/bin", "HOME": home.path, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"],
                outputIsTerminal: true, columns: 80, program: URL(fileURLWithPath: "/bin/bash"), folder: work)
            let text = await run.result().text.replacingOccurrences(of: "\r\n", with: "\n")
            #expect(
                Self.shape(text, port: server.port) == Self.shape(step.output.joined(separator: "\n"), port: 3000),
                "\(step.command)\n\(text)")
            // What is replayed comes from no network.
            #expect((server.requestCount == requests) == step.command.contains("--replay"))
            requests = server.requestCount
        }
        #expect(try Data(contentsOf: work.appendingPathComponent("atlas.bin")) == GeneratedBody().data(count: 1_000_000))
    }
}

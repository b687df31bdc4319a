// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import Testing

@testable import CurlewTool

/// The steps, the comparison and the page of `bench`.
@Suite(.timeLimit(.minutes(2))) struct BenchReportTests {
    /// The words of the lines that begin with a label.
    private static func rows(_ labels: [String], in text: String) -> [[String]] {
        let lines = text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        return labels.compactMap { label in lines.first { $0.first == label } }
    }

    // MARK: Steps

    @Test("each rate is a step with a row of its own, for which the assertions hold") func steps() async throws {
        let server = try LoopbackServer { _, _ in .ok("x") }
        let words = ["bench", "--duration", "0.5", "--rate", "20,60,200", "--assert", "rate<100", server.url("/")]
        let result = try await ToolRun(words).result()
        #expect(server.requestCount == 10 + 30 + 100)
        let rows = Self.rows(["20", "60", "200"], in: result.text)
        #expect(rows.count == 3)
        #expect(result.text.hasPrefix("rate            a second        50 %        90 %        99 %     slowest  failed\n"))
        for row in rows {
            #expect(row.count == 11 && row.last == "0" && row[3] == "ms", "\(row)")
            let (asked, achieved) = (Double(row[0]) ?? 0, Double(row[1]) ?? 0)
            #expect(achieved > asked / 5 && achieved < asked * 1.1, "\(row)")
        }
        // A machine that is very slow keeps the last step below, too.
        let isBroken = (rows.last.flatMap { Double($0[1]) } ?? 0) >= 100
        #expect(result.status == (isBroken ? 1 : 0))
        if isBroken { #expect(result.error.hasPrefix("curlew: not met: rate 200: rate<100: it was ")) }
        // Without a duration, each step has the requests.
        let counted = try await ToolRun(["bench", "-n", "7", "--rate", "100,50.5", server.url("/")]).result()
        #expect(server.requestCount == 140 + 14 && Self.rows(["100", "50.5"], in: counted.text).count == 2)
    }

    @Test("what went wrong in a step is named with it") func troubles() async throws {
        let server = try LoopbackServer { request, _ in request.sequence <= 5 ? .ok("x") : .status(500) }
        let result = try await ToolRun(
            ["bench", "-n", "5", "-c", "1", "--rate", "100,200", "--assert", "failures<=0", server.url("/")]
        ).result()
        #expect(Self.rows(["100", "200"], in: result.text).map(\.last) == ["0", "5"], "\(result.text)")
        #expect(result.error == "curlew: not met: rate 200: failures<=0: it was 5\n")
        server.stop()
        let down = try await ToolRun(["bench", "-n", "2", "--rate", "100,200", server.url("/")]).result()
        #expect(down.status == 6 && down.text.contains("\nrate 200, failed 2: "), "\(down.text)")
        #expect(Self.rows(["100"], in: down.text).first?.dropFirst(2) == ["-", "-", "-", "-", "2"])
    }

    @Test(
        "steps, comparisons and pages that can't be are refused",
        arguments: [
            (["--rate", "0"], "--rate needs numbers from 0.001 to 1000000, not 0"), (["--rate", "1e-300"], "not 1e-300"),
            (["--rate", "5,-1"], "not -1"), (["--rate", "5,"], "'5,' is invalid"), (["--rate", "nan"], "is invalid"),
            (["--rate", "x"], "is invalid"),
            (["--rate", "1,2", "--compare", "http://localhost/"], "--compare and several steps of --rate can't be combined"),
            (["--force"], "--force requires --html"), (["--html", "-"], "--html needs a file"),
            (["http://localhost:1/"], "\"http:\" begins a second URL, which --compare takes"),
        ] as [([String], String)])
    func refusals(_ words: [String], _ message: String) async throws {
        let result = try await ToolRun(["bench", "http://127.0.0.1:1/"] + words).result()
        #expect(result.status == 2 && result.error.contains(message), "\(result.error)")
    }

    // MARK: Comparison

    private static func figures(_ latencies: [Double], name: String? = nil) -> BenchFigures {
        let samples = latencies.enumerated().map { index, latency in
            BenchSample(due: .milliseconds(index), latency: .seconds(latency / 1000), status: 200)
        }
        return BenchFigures(
            name: name, url: "http://localhost/", rate: nil, samples: samples, unsent: 0, elapsed: .milliseconds(latencies.count))
    }

    /// Latencies without an order that differ by up to a millisecond.
    private static func noise(_ count: Int, seed: Int) -> [Double] { (0..<count).map { Double(($0 * 7919 + seed) % 1000) / 1000 } }

    @Test("the interval holds the difference, and 0 only where there is none that can be seen") func intervals() throws {
        let base = Self.noise(1000, seed: 0).map { $0 + 10 }
        let slower = try #require(BenchComparison(Self.figures(base), Self.figures(Self.noise(1000, seed: 500).map { $0 + 12 })))
        #expect(slower.differences.map(\.percent) == [50, 99])
        for difference in slower.differences {
            let interval = try #require(difference.interval)
            #expect(interval.contains(2) && interval.lowerBound > 1.5 && interval.upperBound < 2.5, "\(interval)")
        }
        #expect(slower.lines[0].text.hasPrefix("+2.00 ms, +1.") && slower.lines[0].text.hasSuffix(" ms: slower"), "\(slower.lines)")
        let faster = try #require(BenchComparison(Self.figures(base), Self.figures(base.map { $0 - 3 })))
        #expect(faster.lines.map(\.text) == ["-3.00 ms, -3.00 ms to -3.00 ms: faster", "-3.00 ms, -3.00 ms to -3.00 ms: faster"])
        let same = try #require(BenchComparison(Self.figures(base), Self.figures(Self.noise(1000, seed: 250).map { $0 + 10 })))
        for line in same.lines { #expect(line.text.hasSuffix(": no difference"), "\(line)") }
        // The same samples have the same intervals.
        #expect(BenchComparison(Self.figures(base), Self.figures(base)) == BenchComparison(Self.figures(base), Self.figures(base)))
    }

    @Test("what slows both URLs for a while does not count") func drift() throws {
        func drifting(_ offset: Double, seed: Int) -> BenchFigures {
            Self.figures(Self.noise(2000, seed: seed).enumerated().map { $1 / 100 + Double($0) / 20 + offset })
        }
        let comparison = try #require(BenchComparison(drifting(0, seed: 1), drifting(1, seed: 77)))
        for difference in comparison.differences {
            let interval = try #require(difference.interval)
            // The latencies are from 0 to 100 ms, and those of slices that were drawn for each by itself would differ by several.
            #expect(interval.contains(1) && interval.upperBound - interval.lowerBound < 0.5, "\(interval)")
        }
    }

    @Test("few responses have no interval, and none no comparison") func few() throws {
        let comparison = try #require(BenchComparison(Self.figures([1, 2, 3]), Self.figures([2, 3, 4])))
        #expect(comparison.lines.map(\.name) == ["median", "99 %"])
        #expect(comparison.lines[0].text == "+1.00 ms, without an interval: fewer than 100 responses of each URL")
        #expect(BenchComparison(Self.figures([]), Self.figures([1])) == nil)
    }

    @Test("requests to two URLs take turns, and the slower one is named") func compare() async throws {
        let paths = Lock<[String]>([])
        let server = try LoopbackServer { request, _ in
            paths.withLock { $0.append(request.path) }
            return request.path == "/slow" ? ServerResponse.ok("x").delayed(by: .milliseconds(30)) : .ok("x")
        }
        let result = try await ToolRun(
            ["bench", "-n", "120", "-c", "1", "POST", server.url("/fast"), "--compare", server.url("/slow"), "a=1", "X-Y:z"]
        ).result()
        #expect(result.status == 0 && result.error == "")
        #expect(paths.withLock { $0 } == (0..<240).map { $0 % 2 == 0 ? "/fast" : "/slow" })
        #expect(server.requests.allSatisfy { $0.body == Data(#"{"a":"1"}"#.utf8) && $0.header("X-Y") == "z" })
        #expect(result.text.hasPrefix("first URL   \(server.url("/fast"))\nsecond URL  \(server.url("/slow"))\n\nURL "), "\(result.text)")
        let median = Self.rows(["median"], in: result.text).first ?? []
        #expect(median.last == "slower" && median[1].hasPrefix("+"), "\(result.text)")
        // Each of four workers alternates too; an assertion names the URL.
        paths.withLock { $0 = [] }
        let wide = try await ToolRun(
            ["bench", "-n", "30", "-c", "4", "--assert", "p50<20ms", server.url("/fast"), "--compare", server.url("/slow")]
        ).result()
        #expect(paths.withLock { $0 }.count { $0 == "/slow" } == 30)
        #expect(wide.status == 1 && wide.error.contains("second URL: p50<20ms: it was "), "\(wide.error)")
        #expect(wide.text.contains("without an interval: fewer than 100 responses of each URL"))
    }

    @Test("what was due for each of two URLs, and not sent, is counted for it", arguments: [1, 2, 3])
    func unsent(_ workers: Int) async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("x")
        }
        // Each worker waits for the response to its first request until all of the others were due.
        let opener = Task {
            let hasArrived = await server.waitForRequests(workers)
            try await Task.sleep(for: .milliseconds(600))
            gate.open()
            return hasArrived
        }
        let result = try await ToolRun(
            ["bench", "--duration", "0.5", "--rate", "21", "-c", "\(workers)", server.url("/a"), "--compare", server.url("/b")]
        ).result()
        #expect(try await opener.value)
        let counts = ["a", "b"].map { path in server.requests.count { $0.path == "/\(path)" } }
        #expect(counts == [(workers + 1) / 2, workers / 2])
        let unsent = result.text.split(separator: "\n").filter { $0.contains("not sent") }
            .compactMap { Int($0.drop { !$0.isNumber }.prefix(while: \.isNumber)) }
        #expect(unsent.reduce(0, +) == 10 - workers, "\(result.text)")
    }

    // MARK: Page

    @Test("the page has all figures, and neither scripts nor secrets") func page() async throws {
        let server = try LoopbackServer { request, _ in request.path == "/a<b>'&" ? .ok("x") : .ok("y") }
        let directory = try TemporaryDirectory()
        let file = directory.file("report.html")
        let url = "http://name:word@127.0.0.1:\(server.port)/a%3Cb%3E'&?key=secret"
        let words = ["bench", "-n", "40", "-c", "2", url, "X-Api-Key:hidden", "--html", file.path, "--assert=p99<60s"]
        let result = try await ToolRun(words).result()
        #expect(result.status == 0 && result.error == "")
        #expect(result.text.contains("statuses    200: 40\n"))
        let page = try String(contentsOf: file, encoding: .utf8)
        #expect(page.hasPrefix("<!DOCTYPE html>") && page.hasSuffix("</html>\n"))
        #expect(page.contains("<h1>GET http://127.0.0.1:\(server.port)/a%3Cb%3E&#39;&amp;</h1>"))
        for secret in ["name:", "word@", "secret", "hidden", "<script", "http-equiv=\"refresh", " src=", " href="] {
            #expect(!page.contains(secret), "\(secret)")
        }
        for text in [
            "<svg ", "<th>requests</th><td>40</td>", "<th>concurrency</th><td>2</td>", "<th>99.9 %</th>", "All of these hold: p99&lt;60s",
            "default-src 'none'", "curlew \(CurlewInfo.version)", "<th>statuses</th><td>200: 40</td>",
        ] { #expect(page.contains(text), "\(text)") }
        // What was counted is in the bars.
        let bars = page.components(separatedBy: "<rect ").dropFirst().compactMap { bar in
            bar.components(separatedBy: "</title>").first?.components(separatedBy: ": ").last.flatMap { Int($0) }
        }
        #expect(bars.reduce(0, +) == 40)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["report.html"])
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int == page.utf8.count)
    }

    @Test("the page of steps, and of a comparison, has a part for each") func parts() async throws {
        let server = try LoopbackServer { _, _ in .ok("x") }
        let directory = try TemporaryDirectory()
        let steps = directory.file("steps").path
        _ = try await ToolRun(
            ["bench", "-n", "5", "--rate", "100,200", "--html", steps, "--assert", "rate>1000000", server.url("/")]
        ).result()
        let page = try String(contentsOfFile: steps, encoding: .utf8)
        for text in ["<h2>Rate 100</h2>", "<h2>Rate 200</h2>", "Not met:", "rate 200: rate&gt;1000000: it was ", "100, 200 a second"] {
            #expect(page.contains(text), "\(text)")
        }
        #expect(page.components(separatedBy: "<svg ").count == 3)
        let both = directory.file("both").path
        _ = try await ToolRun(["bench", "-n", "100", "--html", both, server.url("/a"), "--compare", server.url("/b")]).result()
        let compared = try String(contentsOfFile: both, encoding: .utf8)
        for text in ["<h2>First URL</h2>", "<h2>Second URL</h2>", "95 % confidence interval", "100 to each URL", "<th>median</th>"] {
            #expect(compared.contains(text), "\(text)")
        }
    }

    @Test("a file that is there is replaced on request only, before anything is sent") func existing() async throws {
        let server = try LoopbackServer { _, _ in .ok("x") }
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("old".utf8), to: "report")
        let words = ["bench", "-n", "3", server.url("/"), "--html", file.path]
        let refused = try await ToolRun(words).result()
        #expect(refused.status == 10 && refused.error == "curlew: \(file.path): file exists; use --force to replace it\n")
        #expect(server.requestCount == 0)
        #expect(try Data(contentsOf: file) == Data("old".utf8))
        #expect(try await ToolRun(words + ["--force"]).result().status == 0)
        #expect(try Data(contentsOf: file).starts(with: "<!DOCTYPE".utf8))
        let folder = try await ToolRun(["bench", server.url("/"), "--force", "--html", directory.url.path]).result()
        #expect(folder.status == 10 && folder.error.contains("not a regular file"))
        let nowhere = try await ToolRun(["bench", server.url("/"), "--html", directory.file("none/report").path]).result()
        #expect(nowhere.status == 10 && nowhere.error.hasSuffix("/none/report: No such file or directory\n"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["report"])
        #expect(server.requestCount == 3)
    }

    @Test("a file that appears meanwhile is kept") func race() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("report").path
        let file = try NewFile(path, replacing: false)
        try directory.write(Data("new".utf8), to: "report")
        #expect(file.write(Data("page".utf8))?.message == "\(path): file exists; use --force to replace it")
        #expect(try Data(contentsOf: directory.file("report")) == Data("new".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["report"])
    }
}

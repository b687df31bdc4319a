// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Curlew

/// `curlew bench URL`
struct BenchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench", abstract: "Sends a request many times, and prints how long the responses took.",
        discussion: """
            A request that was sent again, because a reused connection was closed before a response, is one request, and is reported.
            The exit status is 1 if an assertion does not hold, and else that of the most frequent failure, as in the help of curlew; a
            response is none, whichever its status, but for the assertions of failures.
            """, helpNames: .long)

    @OptionGroup var options: SendOptions
    @Option(name: [.customShort("n"), .customLong("requests")], help: "how many requests to send; 200 by default") var count: Int?
    @Option(name: .long, help: "how long to begin requests, in seconds, in place of --requests; those in flight are awaited")
    var duration: Seconds?
    @Option(name: [.customShort("c"), .long], help: "how many at a time; 50 by default") var concurrency = 50
    @Option(name: .long, help: "how many requests to begin a second; without it each begins when another has ended") var rate: Double?

    @Option(
        name: .customLong("assert"),
        help: "fail unless this holds: p99<200ms, mean<50ms, max<1s, failures<1%, failures<=0 or rate>100; may be repeated")
    var assertions: [BenchAssertion] = []

    func run(environment: [String: String]) async throws(UsageError) -> Outcome {
        if count != nil, duration != nil { throw UsageError("--requests and --duration can't be combined") }
        guard (1...100_000_000).contains(count ?? 1) else { throw UsageError("--requests needs a number from 1 to 100000000") }
        guard (1...10_000).contains(concurrency) else { throw UsageError("--concurrency needs a number from 1 to 10000") }
        if let rate, !(rate > 0 && rate <= 1e6) { throw UsageError("--rate needs a number above 0, up to 1000000") }
        let arguments = try Arguments(options)
        if let name = unsupported { throw UsageError("\(name) has no meaning for bench") }
        let plan = try RequestPlan(arguments, environment: environment)
        let body: Data?
        switch plan.body {
        case .none: body = nil
        case .bytes(let data): body = data
        case .file(let path), .stream(let path): body = try Self.contents(path)
        case .standardInput: body = try Self.contents("-")
        case .parts: throw UsageError("--multipart has no meaning for bench")
        }
        var configuration: SessionConfiguration
        do { configuration = try TransferSetup.configuration(arguments) } catch { throw UsageError("\(error)") }
        configuration.maximumConnectionsPerHost = concurrency
        let run = BenchRun(
            count: duration == nil ? count ?? 200 : nil, duration: duration?.duration, concurrency: concurrency, rate: rate, plan: plan,
            body: body, assertions: assertions, manager: SessionManager(configuration: configuration))
        return await Tool.stoppable(timeout: options.deadline?.duration) { await run.run() }
    }

    private static func contents(_ path: String) throws(UsageError) -> Data {
        guard let data = InputFile.contents(path) else { throw UsageError("\(path.quoted) can't be read") }
        return data
    }

    /// The options of a request that a benchmark does not have, which its help leaves out.
    static let refused: [(name: String, isGiven: @Sendable (SendOptions) -> Bool)] = [
        ("--multipart", \.multipart), ("--verbose", \.verbose), ("--headers", \.headers), ("--body-only", \.bodyOnly), ("--meta", \.meta),
        ("--print", { $0.print != nil }), ("--pretty", { $0.pretty != nil }), ("--filter", { $0.filter != nil }), ("--pager", \.pager),
        ("--show-secrets", \.showSecrets), ("--offline", \.offline),
        ("--curl", \.printsCurl), ("--download", { $0.download != nil }), ("--continue", \.resumesDownload), ("--force", \.replacesFile),
        ("--waterfall", { $0.waterfall != nil }), ("--har", { $0.har != nil }), ("--record", { $0.record != nil }),
        ("--replay", { $0.replay != nil }), ("--netrc", \.netrc), ("--session", { $0.session != nil }), ("--retry", { $0.retry != nil }),
        ("--auth-type", { $0.authType == .challenge }), ("--version", \.showsVersion), ("--completions", { $0.completions != nil }),
        ("--ignore-stdin", \.ignoreStdin),
    ]

    /// The first option that a benchmark does not have.
    private var unsupported: String? {
        if let user = options.user, !user.unicodeScalars.contains(":") { return "--user without a password" }
        return Self.refused.first { $0.isGiven(options) }?.name
    }

    /// A help text without the options that are refused, and with each of the others once.
    static func supported(_ help: String) -> String {
        var isShown = true
        var shown: Set<Substring> = []
        let lines = help.split(separator: "\n", omittingEmptySubsequences: false).filter { line in
            let text = line.drop { $0 == " " }
            // A line that is neither the first of an option nor indented like what continues one.
            if line.count - text.count < 20 { isShown = true }
            if text.first == "-", let name = text.split(whereSeparator: { $0 == " " || $0 == "," }).first(where: { $0.hasPrefix("--") }) {
                isShown = !refused.contains { $0.name == name } && shown.insert(name).inserted
            }
            return isShown
        }
        return lines.joined(separator: "\n")
    }
}

/// The sending of `bench`.
struct BenchRun: Sendable {
    /// `nil` for as many as begin within the duration.
    let count: Int?
    let duration: Duration?
    let concurrency: Int
    let rate: Double?
    let plan: RequestPlan
    let body: Data?
    let assertions: [BenchAssertion]
    let manager: SessionManager

    private struct Sample {
        /// From when the request was due, which with a rate is not when it could be sent: a server that stalls delays the requests behind,
        /// and these count too (coordinated omission).
        var latency: Duration
        var status: Int?
        var failure: Outcome?
        var bytes: Int64 = 0
        /// How often libcurl has sent the request again.
        var repetitions = 0
    }

    func run() async -> Outcome {
        let start = ContinuousClock.now
        let end = duration.map { start + $0 }
        let count = count ?? .max
        let workers = min(concurrency, count)
        var samples: [Sample] = []
        await withTaskGroup(of: [Sample].self) { group in
            for worker in 0..<workers {
                group.addTask {
                    var own: [Sample] = []
                    for number in stride(from: worker, to: count, by: workers) {
                        if Task.isCancelled { break }
                        var due = ContinuousClock.now
                        if let end, due >= end { break }
                        if let rate {
                            due = start + .seconds(Double(number) / rate)
                            if let end, due >= end { break }
                            guard (try? await Task.sleep(until: due, clock: .continuous)) != nil else { break }
                        }
                        let sample = await send(due: due)
                        // A request that the end of the run has cancelled tells nothing of the server.
                        if sample.failure != nil, Task.isCancelled { break }
                        own.append(sample)
                    }
                    return own
                }
            }
            for await own in group { samples += own }
        }
        let elapsed = ContinuousClock.now - start
        var unsent = 0
        if let rate, let duration, !Task.isCancelled { unsent = max(Int(duration / .seconds(1) * rate) - samples.count, 0) }
        let text = Self.report(samples, unsent: unsent, elapsed: elapsed, width: Output.standard.width ?? 80)
        do {
            try Output.standard.write(Data(text.utf8))
        } catch {
            return Outcome(error)
        }
        let outcome = Self.outcome(samples.compactMap(\.failure), of: samples.count)
        return outcome.status == .interrupted ? outcome : broken(samples, unsent: unsent, elapsed) ?? outcome
    }

    /// The outcome if an assertion does not hold; `nil` if all do.
    ///
    /// - Parameter unsent: how many requests were due and not sent, each of which is a failure without an end.
    private func broken(_ samples: [Sample], unsent: Int, _ elapsed: Duration) -> Outcome? {
        let failures = samples.count { $0.failure != nil || $0.status ?? 0 >= 400 }
        let run = BenchAssertion.Measurements(
            latencies: samples.filter { $0.failure == nil }.map { $0.latency / .milliseconds(1) }.sorted()
                + Array(repeating: .infinity, count: unsent),
            failures: failures + unsent, count: samples.count + unsent,
            perSecond: Double(samples.count - failures) / max(elapsed / .seconds(1), 1e-9))
        let unmet = assertions.compactMap { $0.failure(of: run) }
        return unmet.isEmpty ? nil : Outcome(status: .other, message: "not met: \(unmet.joined(separator: "; "))")
    }

    /// The outcome of a run: that of the most frequent failure, the first of several.
    static func outcome(_ failures: [Outcome], of count: Int) -> Outcome {
        let counts = Dictionary(grouping: failures, by: \.status).mapValues(\.count)
        guard let most = counts.values.max(), let first = failures.first(where: { counts[$0.status] == most }) else { return .success }
        let message = failures.count == count ? "all requests failed: \(first.message ?? "")" : nil
        return Outcome(status: first.status, message: message ?? "\(failures.count) of \(count) requests failed")
    }

    private func send(due: ContinuousClock.Instant) async -> Sample {
        let request =
            body.map { manager.upload($0, to: plan.url, method: plan.method, headers: plan.headers) }
            ?? manager.request(plan.url, method: plan.method, headers: plan.headers)
        let response = await request.serializingData().response
        var sample = Sample(latency: ContinuousClock.now - due, status: response.response?.statusCode)
        sample.repetitions = response.metrics.transactionMetrics.reduce(0) { $0 + max($1.timesSent - 1, 0) }
        switch response.result {
        case .success(let data): sample.bytes = Int64(data.count)
        // A response without a body has no data, which is no failure.
        case .failure(CurlewError.responseSerializationFailed) where sample.status != nil: break
        case .failure(let error): sample.failure = Outcome(error)
        }
        return sample
    }

    // MARK: Report

    private static func report(_ samples: [Sample], unsent: Int, elapsed: Duration, width: Int) -> String {
        let seconds = elapsed / .seconds(1)
        let good = samples.filter { $0.failure == nil }
        let latencies = good.map { $0.latency / .milliseconds(1) }.sorted()
        var lines = ["requests    \(samples.count) in \(number(seconds)) s, \(number(Double(samples.count) / max(seconds, 1e-9))) a second"]
        lines.append("received    \(good.reduce(0) { $0 + $1.bytes }) bytes of bodies")
        let statuses = Dictionary(grouping: good, by: { $0.status ?? 0 }).mapValues(\.count).sorted { $0.key < $1.key }
        if !statuses.isEmpty { lines.append("statuses    " + statuses.map { "\($0.key): \($0.value)" }.joined(separator: ", ")) }
        let messages = samples.compactMap(\.failure).map { $0.message ?? "failed" }
        let errors = Dictionary(grouping: messages, by: \.self).mapValues(\.count).sorted { $0.value > $1.value }
        for (error, count) in errors.prefix(5) { lines.append("failed      \(count): \(error)") }
        let repetitions = samples.reduce(0) { $0 + $1.repetitions }
        if repetitions > 0 { lines.append("sent again  \(repetitions): a reused connection was closed before a response") }
        if unsent > 0 { lines.append("not sent    \(unsent): due, but --concurrency was reached") }
        guard !latencies.isEmpty else { return lines.joined(separator: "\n") + "\n" }
        lines.append("")
        for percent in [50.0, 75, 90, 95, 99, 99.9, 100] {
            let name = percent == 100 ? "slowest" : "\(percent == percent.rounded() ? "\(Int(percent))" : "\(percent)") %"
            lines.append(name + String(repeating: " ", count: 12 - name.count) + MetaText.text(percentile(percent, of: latencies)))
        }
        lines.append("")
        lines += histogram(latencies, width: width)
        return lines.joined(separator: "\n") + "\n"
    }

    /// The latency that a part of the samples does not exceed.
    static func percentile(_ percent: Double, of sorted: [Double]) -> Double {
        let rank = Int((percent / 100 * Double(sorted.count)).rounded(.up))
        return sorted[min(max(rank - 1, 0), sorted.count - 1)]
    }

    /// Ten lines from the fastest to the slowest, with bars that fit the width.
    static func histogram(_ sorted: [Double], width: Int) -> [String] {
        guard let first = sorted.first, let last = sorted.last else { return [] }
        let step = max((last - first) / 10, 1e-6)
        var counts = [Int](repeating: 0, count: 10)
        for value in sorted { counts[min(Int((value - first) / step), 9)] += 1 }
        let most = counts.max() ?? 1
        let digits = "\(most)".count
        return counts.enumerated().map { index, count in
            let edge = MetaText.text(first + step * Double(index + 1))
            let bar = max(width - 14 - digits - 3, 1)
            let length = count == 0 ? 0 : max(count * bar / most, 1)
            return String(repeating: " ", count: max(12 - edge.count, 0)) + edge + "  "
                + String(repeating: " ", count: digits - "\(count)".count) + "\(count)"
                + (length > 0 ? " " + String(repeating: "█", count: length) : "")
        }
    }

    static func number(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}

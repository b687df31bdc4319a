// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Curlew

/// `curlew bench URL`
struct BenchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench", abstract: "Sends a request many times, and prints how long the responses took.",
        discussion: """
            A request that was sent again, because a reused connection was closed before a response, is one request, and is reported.
            With --compare the requests to both URLs take turns, so that a change of the machine's load meets both. The confidence interval
            of a difference is a bootstrap's: the run is cut into slices of time, the slices are drawn again a thousand times, with a
            seed that is the same in each run, and 95 % of the differences lie within the interval. If that has 0 in it, there is no
            difference that this run could show.
            The exit status is 1 if an assertion does not hold, and else that of the most frequent failure, as in the help of curlew; a
            response is none, whichever its status, but for the assertions of failures.
            """, helpNames: .long)

    @OptionGroup var options: SendOptions
    @Option(name: [.customShort("n"), .customLong("requests")], help: "how many requests to send; 200 by default") var count: Int?
    @Option(name: .long, help: "how long to begin requests, in seconds, in place of --requests; those in flight are awaited")
    var duration: Seconds?
    @Option(name: [.customShort("c"), .long], help: "how many at a time; 50 by default") var concurrency = 50
    @Option(
        name: .long,
        help: """
            how many requests to begin a second; without it each begins when another has ended. Several, as 100,200,400, are steps, each \
            with the requests or the duration given
            """)
    var rate: BenchRates?
    @Option(name: .long, help: "compare with this URL: the same requests go to both in turn, with header fields and credentials")
    var compare: String?
    @Option(
        name: .long, help: "write a report with a histogram into a file, which must not be there without --force", completion: .file())
    var html: String?

    @Option(
        name: .customLong("assert"),
        help: """
            fail unless this holds, in each step and for each URL: p99<200ms, mean<50ms, max<1s, failures<1%, failures<=0 or rate>100; may \
            be repeated
            """)
    var assertions: [BenchAssertion] = []

    func run(environment: [String: String]) async throws(UsageError) -> Outcome {
        if count != nil, duration != nil { throw UsageError("--requests and --duration can't be combined") }
        guard (1...100_000_000).contains(count ?? 1) else { throw UsageError("--requests needs a number from 1 to 100000000") }
        guard (1...10_000).contains(concurrency) else { throw UsageError("--concurrency needs a number from 1 to 10000") }
        let rates = rate?.values ?? []
        if let odd = rates.first(where: { !($0 >= 0.001 && $0 <= 1e6) }) {
            throw UsageError("--rate needs numbers from 0.001 to 1000000, not \(BenchRun.plain(odd))")
        }
        if compare != nil, rates.count > 1 { throw UsageError("--compare and several steps of --rate can't be combined") }
        if options.replacesFile, html == nil { throw UsageError("--force requires --html") }
        if html == "-" { throw UsageError("--html needs a file; without it the report goes to standard output") }
        if let name = unsupported { throw UsageError("\(name) has no meaning for bench") }
        var sendOptions = options
        // What --force replaces is the report.
        sendOptions.replacesFile = false
        let arguments = try Arguments(sendOptions)
        let plans = try plans(arguments, environment)
        let body = try Self.body(of: plans[0])
        var configuration: SessionConfiguration
        do { configuration = try TransferSetup.configuration(arguments) } catch { throw UsageError("\(error)") }
        configuration.maximumConnectionsPerHost = concurrency
        let report: NewFile?
        do throws(NewFile.Refusal) {
            report = if let html { try NewFile(html, replacing: options.replacesFile) } else { nil }
        } catch {
            return error.outcome
        }
        let run = BenchRun(
            plans: plans, body: body, count: duration == nil ? count ?? 200 : nil, duration: duration?.duration, concurrency: concurrency,
            rates: rates, assertions: assertions, report: report, manager: SessionManager(configuration: configuration))
        return await Tool.stoppable(timeout: options.deadline?.duration) { await run.run() }
    }

    /// The request, and the same to the URL that is compared.
    private func plans(_ arguments: Arguments, _ environment: [String: String]) throws(UsageError) -> [RequestPlan] {
        let second = arguments.items.first { item in
            if case .header(let name, let value) = item { ["http", "https"].contains(name) && value.hasBytePrefix("//") } else { false }
        }
        if let second { throw UsageError("\("\(second.name):".quoted) begins a second URL, which --compare takes") }
        let plan = try RequestPlan(arguments, environment: environment)
        guard let compare else { return [plan] }
        var other = arguments
        other.url = compare
        return [plan, try RequestPlan(other, environment: environment)]
    }

    private static func body(of plan: RequestPlan) throws(UsageError) -> Data? {
        switch plan.body {
        case .none: return nil
        case .bytes(let data): return data
        case .file(let path), .stream(let path): return try contents(path)
        case .standardInput: return try contents("-")
        case .parts: throw UsageError("--multipart has no meaning for bench")
        }
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
        ("--curl", \.printsCurl), ("--download", { $0.download != nil }), ("--continue", \.resumesDownload),
        ("--waterfall", { $0.waterfall != nil }), ("--har", { $0.har != nil }), ("--record", { $0.record != nil }),
        ("--replay", { $0.replay != nil }), ("--diff", \.diff), ("--netrc", \.netrc), ("--session", { $0.session != nil }),
        ("--retry", { $0.retry != nil }),
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
            // What continues an option is indented, and may begin with the name of another one.
            guard line.count - text.count < 20 else { return isShown }
            isShown = true
            if text.first == "-", let name = text.split(whereSeparator: { $0 == " " || $0 == "," }).first(where: { $0.hasPrefix("--") }) {
                isShown = !refused.contains { $0.name == name } && shown.insert(name).inserted
            }
            return isShown
        }
        return lines.joined(separator: "\n")
    }
}

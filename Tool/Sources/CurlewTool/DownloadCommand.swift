// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Curlew
import CurlewDownloads

/// A number of bytes with an optional unit, such as `500k` or `1.5M`.
struct ByteRate: ExpressibleByArgument, Equatable {
    let bytesPerSecond: Int64

    init?(argument: String) {
        let units: [Character: Double] = ["k": 1024, "m": 1_048_576, "g": 1_073_741_824]
        let unit = argument.last.flatMap { units[Character($0.lowercased())] }
        let number = unit == nil ? argument[...] : argument.dropLast()
        guard number.utf8.allSatisfy({ $0.isASCIIDigit || $0 == 0x2E }), let value = Double(number),
            value * (unit ?? 1) >= 1, value * (unit ?? 1) <= 1e15
        else { return nil }
        bytesPerSecond = Int64(value * (unit ?? 1))
    }
}

/// `curlew download URL…`
struct DownloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Downloads files, each over several connections; a download that was interrupted, also by SIGKILL, is resumed.",
        helpNames: .long, aliases: ["dl"])

    @Option(
        name: [.customShort("i", allowingJoined: true), .long],
        help: "read URLs from a file, or standard input (-): a file a line, with its mirrors", completion: .file())
    var input: String?
    @Option(name: [.customShort("o", allowingJoined: true), .long], help: "the file's name, for one URL", completion: .file())
    var output: String?
    @Option(name: [.customShort("d", allowingJoined: true), .long], help: "the folder for the files", completion: .directory)
    var directory: String?
    @Flag(name: [.customShort("O"), .long], help: "take names from the URLs, the default") var remoteName = false
    @Flag(name: [.customShort("J"), .long], help: "take names from the Content-Disposition of the responses that bring the files")
    var contentDisposition = false
    @Option(name: [.customShort("s", allowingJoined: true), .long], help: "the most connections for a file; 4 by default") var segments = 4
    @Option(name: [.customShort("j", allowingJoined: true), .long], help: "how many files at a time; 3 by default") var jobs = 3
    @Option(name: .long, help: "another URL of the file, for one URL; may be repeated") var mirror: [String] = []
    @Option(name: .long, help: "the SHA-256 digest that the file must have, for one URL") var sha256: String?
    @Option(name: .long, help: "the most bytes a second of all downloads together; k, M and G are units") var limitRate: ByteRate?
    @Flag(name: .long, help: "replace existing files") var force = false
    @Flag(name: .long, help: "undo a Content-Encoding that was not asked for, in place of keeping its bytes") var decode = false
    @Option(
        name: .long,
        help: "how many failures in a row to try again after; 5 by default. Who asks for a wait of more than an hour is not asked again")
    var retry = 5
    @Option(name: .long, help: "Name:value, a header field; may be repeated") var header: [String] = []
    @Option(name: .long, help: "send a bearer token") var token: String?
    @Option(name: [.customShort("u", allowingJoined: true), .long], help: "NAME:PASSWORD") var user: String?
    @Option(name: .long, help: "the limit for connecting, in seconds") var connectTimeout: Seconds?
    @Option(name: .long, help: "the limit for everything, in seconds") var deadline: Seconds?
    @Option(name: .long, help: "trust these certificates (PEM)", completion: .file()) var cacert: String?
    @Flag(name: .long, help: "don't verify the server's certificate") var insecure = false
    @Option(name: .long, help: "the proxy's URL, or none") var proxy: String?
    @Option(name: .long, help: "the HTTP version: 1.1 or 2") var http: HTTPChoice?
    @Argument(help: "the URLs") var urls: [String] = []

    /// A file to download: its URLs and where it goes.
    struct Job: Sendable {
        let plans: [RequestPlan]
        let name: String
        var url: String { plans[0].url }
    }

    func run(environment: [String: String]) async throws(UsageError) -> Outcome {
        try check()
        let lines = try self.lines()
        guard !lines.isEmpty else { throw UsageError("the URL is missing") }
        if lines.count > 1 {
            for (name, isGiven) in [("--output", output != nil), ("--sha256", sha256 != nil), ("--mirror", !mirror.isEmpty)] where isGiven {
                throw UsageError("\(name) is for one URL, not for \(lines.count)")
            }
        }
        var configuration: SessionConfiguration?
        var jobs: [Job] = []
        for line in lines {
            var plans: [RequestPlan] = []
            for url in line {
                let arguments = try Arguments(requestWords(url))
                plans.append(try RequestPlan(arguments, environment: environment))
                do { configuration = try TransferSetup.configuration(arguments) } catch { throw UsageError("\(error)") }
            }
            guard let url = URL(string: plans[0].url) else { throw UsageError("invalid URL: \(RequestURL.shown(plans[0].url))") }
            jobs.append(Job(plans: plans, name: output ?? SuggestedFileName.name(url: url)))
        }
        if let name = Self.repeated(jobs.map(\.name)), !contentDisposition {
            throw UsageError("two URLs have the file name \(name.quoted)")
        }
        guard var configuration else { throw UsageError("the URL is missing") }
        if let directory {
            do {
                try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            } catch {
                return Outcome(status: .file, message: "\(directory): the folder can't be created")
            }
        }
        configuration.maximumConnectionsPerHost = nil
        let run = DownloadRun(command: self, jobs: jobs, manager: SessionManager(configuration: configuration))
        return await Tool.stoppable(timeout: deadline?.duration) { [deadline] in
            guard let deadline else { return await run.run() }
            let end = Deadline.after(deadline.duration)
            let outcome = await withDeadline(end) { await run.run() }
            // A request may tell of the deadline before the supervision does.
            return outcome.status == .timeout && end.hasPassed ? Stopper.outcome(after: deadline.duration) : outcome
        }
    }

    private func check() throws(UsageError) {
        guard (1...64).contains(segments) else { throw UsageError("--segments needs a number from 1 to 64") }
        guard (1...64).contains(jobs) else { throw UsageError("--jobs needs a number from 1 to 64") }
        guard (0...1000).contains(retry) else { throw UsageError("--retry needs a number from 0 to 1000") }
        if output != nil, contentDisposition || remoteName {
            throw UsageError("--output and \(contentDisposition ? "--content-disposition" : "--remote-name") can't be combined")
        }
        if contentDisposition, remoteName { throw UsageError("--content-disposition and --remote-name can't be combined") }
        if let sha256, digest == nil { throw UsageError("--sha256 needs 64 hexadecimal digits, not \(sha256.quoted)") }
        if let user, !user.unicodeScalars.contains(":") { throw UsageError("--user needs NAME:PASSWORD") }
        if let output, output.isEmpty || output.hasByteSuffix("/") {
            throw UsageError("--output needs a file's name, not \(output.quoted)")
        }
    }

    /// The digest of `--sha256`.
    var digest: Data? {
        guard let digits = sha256.map({ Array($0.utf8) }), digits.count == 64 else { return nil }
        let bytes = stride(from: 0, to: 64, by: 2).compactMap { UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16) }
        return bytes.count == 32 ? Data(bytes) : nil
    }

    /// The URLs of each file.
    private func lines() throws(UsageError) -> [[String]] {
        var lines = urls.map { [$0] }
        if lines.count == 1 { lines[0] += mirror }
        guard let input else { return lines }
        guard let data = InputFile.contents(input) else { throw UsageError("\(input.quoted) can't be read") }
        for line in String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline) where !line.hasBytePrefix("#") {
            let words = line.splitScalars { $0 == " " || $0 == "\t" }.map(String.init)
            if !words.isEmpty { lines.append(words) }
        }
        return lines
    }

    private func requestWords(_ url: String) -> [String] {
        var words = ["GET", url] + header
        for (name, value) in [("--token", token), ("--user", user), ("--cacert", cacert), ("--proxy", proxy)] {
            if let value { words.append("\(name)=\(value)") }
        }
        if let http { words.append("--http=\(http.rawValue)") }
        if let connectTimeout { words.append("--connect-timeout=\(connectTimeout.duration / .seconds(1))") }
        // What was not asked for is a property of the file, as for curl, wget and aria2.
        if !decode { words.append("--no-decode") }
        return insecure ? words + ["--insecure"] : words
    }

    private static func repeated(_ names: [String]) -> String? {
        var seen = Set<String>()
        return names.first { !seen.insert($0).inserted }
    }
}

/// The downloads of one command.
struct DownloadRun: Sendable {
    let command: DownloadCommand
    let jobs: [DownloadCommand.Job]
    let manager: SessionManager

    func run() async -> Outcome {
        let board = DownloadBoard(output: .error)
        let limit = command.limitRate.map { DownloadRateLimit(bytesPerSecond: $0.bytesPerSecond) }
        let drawing = Task { await board.run() }
        let outcomes = await withTaskGroup(of: Outcome.self) { group in
            var outcomes: [Outcome] = []
            for (number, job) in jobs.enumerated() {
                if number >= command.jobs, let outcome = await group.next() { outcomes.append(outcome) }
                group.addTask { await download(job, number, limit, board) }
            }
            for await outcome in group { outcomes.append(outcome) }
            return outcomes
        }
        drawing.cancel()
        await drawing.value
        board.end(count: jobs.count)
        let failed = outcomes.filter { $0.status != .success }
        guard let first = failed.first else { return .success }
        return Outcome(status: first.status, message: jobs.count > 1 ? "\(failed.count) of \(jobs.count) downloads failed" : first.message)
    }

    private func download(_ job: DownloadCommand.Job, _ number: Int, _ limit: DownloadRateLimit?, _ board: DownloadBoard) async -> Outcome {
        var options = SegmentedDownload.Options()
        options.segments = command.segments
        options.sha256 = command.digest
        options.replacesFile = command.force
        options.retryLimit = command.retry
        options.rateLimit = limit
        options.headers = job.plans[0].headers
        options.takesSuggestedName = command.contentDisposition
        let name = job.name
        options.onWait = { board.wait(number, $0, limit: command.retry) }
        var folder = URL(fileURLWithPath: command.directory ?? ".", isDirectory: true)
        if name.hasBytePrefix("/") { folder = URL(fileURLWithPath: "/", isDirectory: true) }
        let file = folder.appendingPathComponent(name)
        board.begin(number, name: name)
        do {
            let download = manager.segmentedDownload(
                job.url, mirrors: job.plans.dropFirst().map(\.url), to: file, options: options)
            let result = try await download.run { board.update(number, $0) }
            board.finish(number, result)
            return .success
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            let path = command.contentDisposition ? error.userInfo["NSFilePath"] as? String ?? file.path : file.relativePath
            return fail(number, Outcome(status: .file, message: "\(path): file exists; use --force to replace it"), board)
        } catch {
            return fail(number, Outcome(error), board)
        }
    }

    private func fail(_ number: Int, _ outcome: Outcome, _ board: DownloadBoard) -> Outcome {
        // A single one is reported at the end.
        board.fail(number, jobs.count > 1 ? outcome.message : nil)
        return outcome
    }
}

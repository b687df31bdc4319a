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
        help:
            "read URLs from a file, or standard input (-): a line for each with its mirrors, and aria2's out= and checksum=; or a Metalink",
        completion: .file())
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
    @Flag(name: [.customShort("r"), .long], help: "load all files below a folder, found by the links of its listings, into like folders")
    var recursive = false
    @Option(name: .long, help: "how many levels of folders --recursive lists; 5 by default") var depth: Int?
    @Option(name: .long, help: "another URL of the file, for one URL; may be repeated") var mirror: [String] = []
    @Option(name: .long, help: "the SHA-256 digest that the file must have, for one URL") var sha256: String?
    @Option(name: .long, help: "a file of sha256sum, which must have each file's digest", completion: .file()) var checksumFile: String?
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
    @Flag(name: .long, help: "send --user, --token and secret fields of --header to each host of a list") var locationTrusted = false
    @Flag(name: .long, help: "take credentials from ~/.netrc") var netrc = false
    @Option(name: .long, help: "send cookies, fields and credentials that are kept under a name, and keep those that are set")
    var session: String?
    @Option(name: .long, help: "the client's certificate and key (PEM, or PKCS #12)", completion: .file()) var cert: String?
    @Option(name: .long, help: "the key, if it has a file of its own (PEM)", completion: .file()) var key: String?
    @Option(name: .long, help: "HOST:PORT:ADDRESS, where to connect to; may be repeated") var resolve: [String] = []
    @Option(name: .long, help: "the limit for connecting, in seconds") var connectTimeout: Seconds?
    @Option(name: .long, help: "the limit for everything, in seconds") var deadline: Seconds?
    @Option(name: .long, help: "trust these certificates (PEM)", completion: .file()) var cacert: String?
    @Flag(name: .long, help: "don't verify the server's certificate") var insecure = false
    @Option(name: .long, help: "the proxy's URL, or none") var proxy: String?
    @Option(name: .long, help: "the HTTP version: 1.1 or 2") var http: HTTPChoice?
    @Argument(help: "the URLs") var urls: [String] = []

    /// A file to download: its URLs and where it goes.
    struct Job: Sendable {
        let plan: RequestPlan
        /// All but the first are mirrors.
        var urls: [String]
        var name: String
        /// Whether a list has named it, also with folders.
        var isNamed: Bool
        var sha256: Data?
        var headers: HTTPHeaders
        var url: String { urls[0] }
    }

    func run(environment: [String: String]) async throws(UsageError) -> Outcome {
        try check()
        let entries = try self.entries()
        guard !entries.isEmpty else { throw UsageError("the URL is missing") }
        let digests = try checksumFile.map { path throws(UsageError) in try DownloadList.digests(of: path) }
        var configuration: SessionConfiguration?
        var jobs: [Job] = []
        var kept: [KeptSession] = []
        for entry in entries {
            var job = try job(entry, environment)
            if let digests {
                let name = URL(fileURLWithPath: job.name).lastPathComponent
                guard let digest = digests[job.name] ?? digests[name] ?? (digests.count == 1 ? digests[""] : nil) else {
                    throw UsageError("\((checksumFile ?? "").quoted) has no digest of \(job.name.quoted)")
                }
                guard job.sha256 == nil || job.sha256 == digest else {
                    throw UsageError("\((checksumFile ?? "").quoted) has another digest of \(job.name.quoted) than the list")
                }
                job.sha256 = digest
            }
            do {
                let arguments = try Arguments(requestWords(job.url))
                if configuration == nil { configuration = try TransferSetup.configuration(arguments) }
                if let credential = try TransferSetup.netrcCredential(arguments, job.plan, environment) {
                    job.headers.update(.authorization(username: credential.user, password: credential.password))
                }
                if let session {
                    var own = try KeptSession(session, for: job.url, arguments, environment, sharing: kept.first?.cookies)
                    own.apply(to: &job.headers)
                    own.note(arguments, job.headers)
                    kept.append(own)
                }
            } catch let error as UsageError {
                throw error
            } catch {
                return Outcome(error)
            }
            jobs.append(job)
        }
        try checkSecrets(jobs, environment)
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
        for session in kept { session.apply(to: &configuration) }
        let run = DownloadRun(command: self, jobs: jobs, kept: kept, manager: SessionManager(configuration: configuration))
        return await Tool.stoppable(timeout: deadline?.duration) { [deadline] in
            guard let deadline else { return await run.run() }
            let end = Deadline.after(deadline.duration)
            let outcome = await withDeadline(end) { await run.run() }
            // A request may tell of the deadline before the supervision does.
            return outcome.status == .timeout && end.hasPassed ? Stopper.outcome(after: deadline.duration) : outcome
        }
    }

    private func job(_ entry: DownloadList.Entry, _ environment: [String: String]) throws(UsageError) -> Job {
        var plans: [RequestPlan] = []
        for url in entry.urls {
            do throws(UsageError) {
                plans.append(try RequestPlan(try Arguments(requestWords(url)), environment: environment))
            } catch {
                throw UsageError(entry.place.map { "\($0): \(error.message)" } ?? error.message)
            }
        }
        guard let url = URL(string: plans[0].url) else { throw UsageError("invalid URL: \(RequestURL.shown(plans[0].url))") }
        let name = output ?? entry.name ?? SuggestedFileName.name(url: url)
        return Job(
            plan: plans[0], urls: plans.map(\.url), name: name, isNamed: entry.name != nil, sha256: entry.sha256, headers: plans[0].headers)
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
        if let user, !user.unicodeScalars.contains(":"), !netrc { throw UsageError("--user needs NAME:PASSWORD") }
        if depth != nil, !recursive { throw UsageError("--depth requires --recursive") }
        guard (1...64).contains(depth ?? 1) else { throw UsageError("--depth needs a number from 1 to 64") }
        if recursive { try checkRecursion() }
        if let output, output.isEmpty || output.hasByteSuffix("/") {
            throw UsageError("--output needs a file's name, not \(output.quoted)")
        }
    }

    private func checkRecursion() throws(UsageError) {
        let others = [
            ("--input", input != nil), ("--output", output != nil), ("--content-disposition", contentDisposition),
            ("--mirror", !mirror.isEmpty), ("--sha256", sha256 != nil), ("--checksum-file", checksumFile != nil),
        ]
        for (name, isGiven) in others where isGiven { throw UsageError("--recursive and \(name) can't be combined") }
        guard urls.count < 2 else { throw UsageError("--recursive takes one URL, not \(urls.count)") }
        if let url = urls.first, RequestURL.hasUserInfo(url) { throw UsageError("--recursive takes the user by --user, not in the URL") }
    }

    /// Refuses to send secrets to all hosts that a list names, which may be that of a server.
    private func checkSecrets(_ jobs: [Job], _ environment: [String: String]) throws(UsageError) {
        let origins = Set(jobs.map { HTTPOrigin(url: $0.url) })
        guard input != nil, origins.count > 1, !locationTrusted else { return }
        let isSecret = header.contains { field in
            let name = field.prefixScalars { $0 != ":" }
            return VerboseText.line(String(name), "x").containsScalars(of: SafeText.hidden)
        }
        let secrets = [
            ("--user", user != nil && !netrc), ("--token", token != nil), ("--header", isSecret),
            ("CURLEW_TOKEN", !(environment["CURLEW_TOKEN"] ?? "").isEmpty),
        ]
        for (name, isGiven) in secrets where isGiven {
            throw UsageError(
                "the list has \(origins.count) origins, and \(name) would be sent to each: --location-trusted allows that, and --netrc and "
                    + "--session have what each is sent")
        }
    }

    /// The digest of `--sha256`.
    var digest: Data? { sha256.flatMap { DownloadList.digest($0) } }

    /// The files, with the names and digests that are known of them.
    private func entries() throws(UsageError) -> [DownloadList.Entry] {
        var entries = urls.map { DownloadList.Entry(urls: [$0]) }
        if entries.count == 1 { entries[0].urls += mirror }
        if let input { entries += try DownloadList.entries(of: input) }
        if entries.count > 1 {
            for (name, isGiven) in [("--output", output != nil), ("--sha256", sha256 != nil), ("--mirror", !mirror.isEmpty)] where isGiven {
                throw UsageError("\(name) is for one URL, not for \(entries.count)")
            }
        }
        if let digest, !entries.isEmpty { entries[0].sha256 = digest }
        return entries
    }

    private func requestWords(_ url: String) -> [String] {
        var words = ["GET", url] + header
        for (name, value) in [
            ("--token", token), ("--user", user), ("--cacert", cacert), ("--proxy", proxy), ("--cert", cert), ("--key", key),
            ("--session", session),
        ] {
            if let value { words.append("\(name)=\(value)") }
        }
        words += resolve.map { "--resolve=\($0)" }
        if netrc { words.append("--netrc") }
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
    let kept: [KeptSession]
    let manager: SessionManager

    func run() async -> Outcome {
        guard command.recursive, let start = jobs.first else { return await load(jobs) }
        DownloadTree.confine(manager, to: start.url)
        let tree: DownloadTree
        do {
            let retrier = PrintedRetries(limit: UInt(command.retry), start.plan, end: nil)
            tree = try await DownloadTree.find(start.url, depth: command.depth ?? 5) { url in
                await DownloadTree.listing(of: url, headers: start.headers, retrier: retrier, with: manager)
            }
        } catch {
            return error.outcome
        }
        let outcome = await load(
            tree.files.map { file in
                var job = start
                (job.urls, job.name, job.isNamed) = ([file.url], file.path, true)
                return job
            })
        for folder in tree.failed { Output.error.note("\(folder.path)/: failed: \(folder.outcome.message ?? "")") }
        if tree.files.isEmpty { Output.error.note("there are no files below \(RequestURL.shown(start.url))") }
        if let report = tree.report { Output.error.note(report) }
        guard outcome.status == .success, let failed = tree.failed.first else { return outcome }
        let count = tree.failed.count
        return Outcome(status: failed.outcome.status, message: "\(count) folder\(count == 1 ? "" : "s") could not be listed")
    }

    private func load(_ jobs: [DownloadCommand.Job]) async -> Outcome {
        let board = DownloadBoard(output: .error)
        let limit = command.limitRate.map { DownloadRateLimit(bytesPerSecond: $0.bytesPerSecond) }
        let drawing = Task { await board.run() }
        let outcomes = await withTaskGroup(of: Outcome.self) { group in
            var outcomes: [Outcome] = []
            for (number, job) in jobs.enumerated() {
                if number >= command.jobs, let outcome = await group.next() { outcomes.append(outcome) }
                group.addTask { await download(job, number, of: jobs.count, limit, board) }
            }
            for await outcome in group { outcomes.append(outcome) }
            return outcomes
        }
        drawing.cancel()
        await drawing.value
        board.end(count: jobs.count)
        do {
            for session in kept { try session.save() }
        } catch {
            return Outcome(error)
        }
        let failed = outcomes.filter { $0.status != .success }
        guard let first = failed.first else { return .success }
        return Outcome(status: first.status, message: jobs.count > 1 ? "\(failed.count) of \(jobs.count) downloads failed" : first.message)
    }

    private func download(
        _ job: DownloadCommand.Job, _ number: Int, of count: Int, _ limit: DownloadRateLimit?, _ board: DownloadBoard
    ) async -> Outcome {
        var options = SegmentedDownload.Options()
        options.segments = command.segments
        options.sha256 = job.sha256
        options.replacesFile = command.force
        options.retryLimit = command.retry
        options.rateLimit = limit
        options.headers = job.headers
        options.takesSuggestedName = command.contentDisposition && !job.isNamed
        let name = job.name
        options.onWait = { board.wait(number, $0, limit: command.retry) }
        var folder = URL(fileURLWithPath: command.directory ?? ".", isDirectory: true)
        if name.hasBytePrefix("/") { folder = URL(fileURLWithPath: "/", isDirectory: true) }
        let file = folder.appendingPathComponent(name)
        if job.isNamed, name.utf8.contains(UInt8(ascii: "/")) {
            try? FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        }
        board.begin(number, name: name)
        do {
            let download = manager.segmentedDownload(
                job.url, mirrors: Array(job.urls.dropFirst()), to: file, options: options)
            let result = try await download.run { board.update(number, $0) }
            board.finish(number, result)
            return .success
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            let path = command.contentDisposition ? error.userInfo["NSFilePath"] as? String ?? file.path : file.relativePath
            return fail(number, of: count, Outcome(status: .file, message: "\(path): file exists; use --force to replace it"), board)
        } catch {
            return fail(number, of: count, Outcome(error), board)
        }
    }

    private func fail(_ number: Int, of count: Int, _ outcome: Outcome, _ board: DownloadBoard) -> Outcome {
        // A single one is reported at the end.
        board.fail(number, count > 1 ? outcome.message : nil)
        return outcome
    }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSigning

/// Runs the transfers of a command of curl.
struct CurlRun: Sendable {
    private let commands: [CurlCommand]
    private let parallel: Int
    private let failsEarly: Bool
    private let environment: [String: String]
    /// The cookies of all transfers that keep cookies.
    private let cookies = CookieStore.memory

    init(_ line: CurlCommandLine, environment: [String: String]) throws(UsageError) {
        (commands, parallel, failsEarly) = (line.commands, line.parallel, line.failsEarly)
        self.environment = environment
        guard let path = line.errorFile, path != "-" else {
            if line.errorFile != nil { dup2(1, 2) }
            return
        }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw UsageError("\(path.quoted) can't be written: \(String(cString: strerror(errno)))") }
        dup2(descriptor, 2)
        close(descriptor)
    }

    /// A transfer whose words are known to be right.
    private struct Job: Sendable {
        let command: CurlCommand
        let arguments: Arguments
        let plan: RequestPlan
    }

    func run() async throws(UsageError) -> Outcome {
        // Nothing is sent if one of them is wrong.
        var jobs: [Job] = []
        for command in commands {
            let arguments = try Arguments(command)
            jobs.append(Job(command: command, arguments: arguments, plan: try RequestPlan(arguments, environment: environment)))
        }
        for note in Set(commands.compactMap(\.note)).sorted() { Output.error.note("curlew: \(note)") }
        for command in commands {
            for path in command.extras.cookieFiles { try load(path, command.extras) }
        }
        // Each transfer appends its heads. What can't be cut, such as a pipe, is opened as it is.
        for command in commands where !command.extras.appendsHeads { command.extras.headFile.map { _ = truncate($0, 0) } }
        let limit = parallel
        let all = jobs
        return await Tool.stoppable(timeout: nil) {
            let outcome = limit > 1 && all.count > 1 ? await runParallel(all, limit) : await runInOrder(all)
            do {
                for path in Set(commands.compactMap(\.extras.cookieJar)).sorted() { try save(path) }
            } catch {
                return Outcome(error)
            }
            return outcome
        }
    }

    private func runInOrder(_ jobs: [Job]) async -> Outcome {
        var last = Outcome.success
        for (index, job) in jobs.enumerated() {
            last = await run(job)
            if Task.isCancelled || failsEarly && last.status != .success { break }
            // The last one is reported by the caller.
            if index + 1 < jobs.count { report(last, job) }
        }
        return jobs.last.map { shown(last, $0) } ?? last
    }

    private func runParallel(_ jobs: [Job], _ limit: Int) async -> Outcome {
        await withTaskGroup(of: (Int, Outcome).self) { group in
            var outcomes: [Int: Outcome] = [:]
            for (index, job) in jobs.enumerated() {
                if index >= limit, let (number, outcome) = await group.next() { outcomes[number] = outcome }
                if Task.isCancelled || failsEarly && outcomes.values.contains(where: { $0.status != .success }) { break }
                group.addTask { (index, await run(job)) }
            }
            for await (number, outcome) in group { outcomes[number] = outcome }
            let ordered = outcomes.sorted { $0.key < $1.key }
            for (number, outcome) in ordered.dropLast() { report(outcome, jobs[number]) }
            guard let (number, last) = ordered.last.map({ ($0.key, $0.value) }) else { return .success }
            // As with curl, a failure of any of them is that of the command.
            if last.status == .success, let failed = ordered.first(where: { $0.value.status != .success })?.value {
                return Outcome(status: failed.status)
            }
            return shown(last, jobs[number])
        }
    }

    private func report(_ outcome: Outcome, _ job: Job) { Tool.report(shown(outcome, job)) }

    /// Without its message, if the command wants none.
    private func shown(_ outcome: Outcome, _ job: Job) -> Outcome {
        job.command.extras.showsErrors ? outcome : Outcome(status: outcome.status)
    }

    private func run(_ job: Job) async -> Outcome {
        var arguments = job.arguments
        let extras = job.command.extras
        var environment = environment
        if let path = extras.netrcFile { environment["NETRC"] = path }
        if extras.keepsCookies {
            let cookies = cookies
            arguments.curl?.settings.append { $0.cookies = cookies }
        }
        let setup: TransferSetup
        do {
            setup = try TransferSetup(arguments, job.plan, environment: environment)
        } catch let error as UsageError {
            return Outcome(status: .usage, message: error.message)
        } catch {
            return Outcome(error)
        }
        return await CurlTransfer(arguments: arguments, plan: job.plan, setup: setup, extras: extras).run()
    }

    // MARK: Cookies

    private func load(_ path: String, _ extras: CurlExtras) throws(UsageError) {
        // As with curl, a file that is not there has no cookies.
        guard let data = InputFile.contents(path) else { return }
        let text = String(decoding: data, as: UTF8.self)
        if text.splitScalars(separator: "\n").contains(where: { $0.lowercased().hasBytePrefix("set-cookie:") }) {
            throw UsageError(
                "\(path.quoted) has header fields, and curl's option --cookie is supported with files in Netscape's format only")
        }
        do {
            try cookies.importNetscape(text)
            if extras.dropsSessionCookies { try cookies.removeSessionCookies() }
        } catch {
            throw UsageError("the cookies of \(path.quoted) can't be read")
        }
    }

    private func save(_ path: String) throws {
        let data = Data(try cookies.exportNetscape().utf8)
        guard path != "-" else { return try Output.standard.write(data) }
        var status = stat()
        let isThere = lstat(path, &status) == 0
        // A file is replaced in one step; a link, a pipe or a device stays what it is.
        let isReplaced = !isThere || status.st_mode & S_IFMT == S_IFREG
        let name = isReplaced ? "\(path).\(UUID().uuidString)" : path
        let mode = isThere ? status.st_mode & 0o777 | 0o600 : 0o600
        let descriptor = open(name, O_WRONLY | O_CREAT | (isReplaced ? O_EXCL : O_TRUNC) | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw FileFailure(path: path, code: errno) }
        do throws(Output.Failure) {
            defer { close(descriptor) }
            try Output(descriptor: descriptor).write(data)
        } catch {
            if isReplaced { unlink(name) }
            throw FileFailure(path: path, code: error.code)
        }
        guard isReplaced, rename(name, path) != 0 else { return }
        let code = errno
        unlink(name)
        throw FileFailure(path: path, code: code)
    }
}

extension CurlExtras.Signature {
    /// Makes the signer of a request.
    ///
    /// - Parameter user: the key and its secret, parted by a colon.
    func signer(url: String, user: String?) throws(UsageError) -> AWSSigner {
        guard let user, let colon = user.unicodeScalars.firstIndex(of: ":") else {
            throw UsageError("curl's option --aws-sigv4 needs --user KEY:SECRET")
        }
        // SERVICE.REGION.amazonaws.com
        let labels = ExchangePrinter.host(of: url).prefixScalars { $0 != ":" }.splitScalars(separator: ".").map(String.init)
        guard let service = service ?? labels.first, let region = region ?? (labels.count > 2 ? labels[1] : nil) else {
            throw UsageError("curl's option --aws-sigv4 needs the region, which the URL's host does not name")
        }
        let credentials = AWSCredentials(
            accessKeyID: String(user[..<colon]), secretAccessKey: String(user.suffix(afterScalarAt: colon)))
        return AWSSigner(AWSSignatureV4(service: service, region: region), credentials: credentials)
    }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The `curlew` command.
enum Tool {
    /// The environment variables that the tool knows. `ProcessInfo` would copy all of them.
    static func environment() -> [String: String] {
        let names = ["CURLEW_PAGER", "CURLEW_TOKEN", "HOME", "NETRC", "NO_COLOR", "PAGER", "TERM", "XDG_CONFIG_HOME"]
        let found = names.compactMap { name in getenv(name).map { (name, String(cString: $0)) } }
        return Dictionary(uniqueKeysWithValues: found)
    }

    /// Runs a command line. Returns the exit status.
    static func main(_ words: [String], environment: [String: String]) async -> ExitStatus {
        // A closed output is detected by writing to it instead.
        signal(SIGPIPE, SIG_IGN)
        let outcome: Outcome
        do throws(UsageError) {
            outcome = try await run(words, environment: environment)
        } catch {
            outcome = Outcome(status: .usage, message: "\(error.message); see curlew --help")
        }
        Pager.finish()
        report(outcome)
        return outcome.status
    }

    /// Writes an outcome's message to standard error.
    static func report(_ outcome: Outcome) {
        if let message = outcome.message { Output.error.note("curlew: \(message)") }
    }

    private static func run(_ words: [String], environment: [String: String]) async throws(UsageError) -> Outcome {
        if let first = words.first, let command = Subcommand(rawValue: first) {
            return try await command.run(Array(words.dropFirst()), environment: environment)
        }
        return try await send(try Arguments(words), environment: environment)
    }

    /// Sends the request of a command line.
    static func send(_ arguments: Arguments, environment: [String: String]) async throws(UsageError) -> Outcome {
        if arguments.showsHelp { return show(Help.shown) }
        if arguments.showsVersion { return show(Help.version) }
        if let name = arguments.completions {
            guard let shell = CompletionScript(rawValue: name) else {
                throw UsageError("--completions knows bash, zsh and fish, not \(name.quoted)")
            }
            do { return show(shell.text(try CompletionTable())) } catch { return Outcome(error) }
        }
        var arguments = arguments
        if arguments.mayReadInput, StandardInput.hasBody() { arguments.body = .standardInput }
        var plan = try RequestPlan(arguments, environment: environment)
        if arguments.pager { try Pager.start(environment) }
        let setup: TransferSetup
        do {
            if arguments.replay != nil { try plan.readBody() }
            setup = try TransferSetup(arguments, plan, environment: environment)
        } catch let error as UsageError {
            throw error
        } catch {
            return Outcome(error)
        }
        if arguments.offline || arguments.printsCurl { return setup.showOffline() }
        let transfer = Transfer(arguments: arguments, plan: plan, setup: setup)
        return await stoppable(timeout: arguments.deadline?.duration) { await transfer.run() }
    }

    /// Runs work that signals and a timeout end.
    static func stoppable(timeout: Duration?, _ body: @escaping @Sendable () async -> Outcome) async -> Outcome {
        let stopper = Stopper()
        let work = Task { await body() }
        stopper.watch(timeout: timeout) { work.cancel() }
        let outcome = await work.value
        return stopper.finish() ?? outcome
    }

    static func show(_ text: String) -> Outcome {
        do {
            try Output.standard.write(Data(text.utf8))
            return .success
        } catch {
            return Outcome(error)
        }
    }
}

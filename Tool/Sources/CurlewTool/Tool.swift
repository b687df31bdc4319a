// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The `curlew` command.
enum Tool {
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
        report(outcome)
        return outcome.status
    }

    /// Writes an outcome's message to standard error.
    static func report(_ outcome: Outcome) {
        if let message = outcome.message { Output.error.note("curlew: \(message)") }
    }

    private static func run(_ words: [String], environment: [String: String]) async throws(UsageError) -> Outcome {
        let arguments = try Arguments(words)
        if arguments.showsHelp { return show(Help.text) }
        if arguments.showsVersion { return show(Help.version) }
        let transfer = Transfer(arguments: arguments, plan: try RequestPlan(arguments, environment: environment))
        let stopper = Stopper()
        let work = Task { await transfer.run() }
        stopper.watch(timeout: arguments.timeout) { work.cancel() }
        let outcome = await work.value
        return stopper.finish() ?? outcome
    }

    private static func show(_ text: String) -> Outcome {
        do {
            try Output.standard.write(Data(text.utf8))
            return .success
        } catch {
            return Outcome(error)
        }
    }
}

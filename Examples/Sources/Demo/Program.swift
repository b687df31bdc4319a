// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// Shows Curlew's main job against a server in this process. Exit status 0 only if all of it worked.
@main
enum Program {
    private static let timeLimit = Duration.seconds(50)

    private static let steps: [any Step] = [
        TokenStep(), RetryStep(), DecodingStep(), DownloadStep(), UploadStep(), StreamStep(), MetricsStep(),
    ]

    /// Asynchronous, so that the main queue runs, on which handlers are called by default.
    static func main() async {
        let succeeded = await run()
        // Only here: what `run` has made is gone by now, the temporary directory too.
        exit(succeeded ? 0 : 1)
    }

    private static func run() async -> Bool {
        let start = ContinuousClock.now
        var current = "Starting the server"
        do {
            let stage = try Stage()
            let watch = Watch(over: stage.manager, limit: timeLimit)
            defer { watch.end() }
            Console.say("Curlew \(CurlewInfo.version) on libcurl \(CurlInfo.current.version), against \(stage.server.url)")
            for (number, step) in steps.enumerated() {
                current = step.title
                Console.say("\n\(number + 1). \(step.title)")
                try await step.run(on: stage)
            }
            Console.say("\nAll \(steps.count) steps worked, in \((ContinuousClock.now - start).inSeconds).")
            return true
        } catch {
            Console.complain("\ncurlew-demo: failed at \"\(current)\": \(error)")
            return false
        }
    }
}

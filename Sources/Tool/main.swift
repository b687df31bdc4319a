// SPDX-License-Identifier: Apache-2.0
import Curlew

Platform.shareHeaps()
DispatchStart.run()
// A task of its own waits for the tool: this file's own code could do so on the main queue only, which needs more descriptors.
Task.detached {
    let status = await Tool.main(Array(CommandLine.arguments.dropFirst()), environment: ProcessInfo.processInfo.environment)
    // Not exit(): what the C libraries do at exit would meet the session's thread at work. Nothing waits in a buffer of ours.
    _exit(status.rawValue)
}
while true { pause() }

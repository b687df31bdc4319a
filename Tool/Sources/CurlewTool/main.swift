// SPDX-License-Identifier: Apache-2.0
import Curlew

Platform.shareHeaps()
DispatchStart.run()
// Detached, because this file's top-level code could only await the tool on the main queue, which needs more descriptors.
Task.detached {
    let status = await Tool.main(Array(CommandLine.arguments.dropFirst()), environment: Tool.environment())
    // Not exit(): the C libraries' exit handlers would run concurrently with the session's thread. No output is buffered.
    _exit(status.rawValue)
}
while true { pause() }

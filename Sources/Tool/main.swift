// SPDX-License-Identifier: Apache-2.0
import Curlew

let status = await Tool.main(Array(CommandLine.arguments.dropFirst()), environment: ProcessInfo.processInfo.environment)
// Not exit(): what the C libraries do at exit would meet the session's thread at work. Nothing waits in a buffer of ours.
_exit(status.rawValue)

// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewURLLoading

/// What was measured of a task.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {  // immutable
    init(_ task: URLSessionTask) { super.init() }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewURLLoading

/// A raw connection.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {  // as its superclass
}

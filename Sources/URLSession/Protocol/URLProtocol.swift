// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewURLLoading

/// Loads requests in place of the network.
open class URLProtocol: CurlewURLLoading.URLProtocol {
    private static let registry = Lock<[AnyClass]>([])

    static var registeredClasses: [AnyClass] { registry.withLock { $0 } }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew
import Dispatch

/// A manager without a proxy, and with a queue of its own.
func makeManager() -> SessionManager {
    var configuration = SessionConfiguration()
    configuration.callbackQueue = DispatchQueue(label: "events-tests")
    configuration.proxy = .none
    return SessionManager(configuration: configuration)
}

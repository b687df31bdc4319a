// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewTestSupport

/// A manager for servers on the loopback: it delivers results on ``CurlewTestSupport/callbackQueue`` and uses no proxy.
public func makeManager(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
    var configuration = SessionConfiguration()
    configuration.callbackQueue = callbackQueue
    configuration.proxy = .none
    change(&configuration)
    return SessionManager(configuration: configuration)
}

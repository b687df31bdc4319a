// SPDX-License-Identifier: Apache-2.0
import Curlew
import Dispatch

/// Ends a manager's requests when the time is up or the process is told to end (as by Ctrl-C): the demonstration then fails and cleans up.
final class Watch: Sendable {
    // Dispatch's sources may be used from any thread, but do not say so on every platform.
    private struct Sources: @unchecked Sendable {
        let all: [any DispatchSourceProtocol]
    }

    private let sources: Sources

    init(over manager: SessionManager, limit: Duration) {
        let timer = DispatchSource.makeTimerSource(queue: .global())
        timer.schedule(deadline: .now() + .seconds(Int(limit.components.seconds)))
        let signals = [SIGINT, SIGTERM].map { number in
            // Ignored, or the process would be gone before the source has told.
            signal(number, SIG_IGN)
            return DispatchSource.makeSignalSource(signal: number, queue: .global())
        }
        sources = Sources(all: [timer] + signals)
        for source in sources.all {
            source.setEventHandler { manager.invalidateAndCancel() }
            source.resume()
        }
    }

    func end() {
        for source in sources.all { source.cancel() }
    }
}

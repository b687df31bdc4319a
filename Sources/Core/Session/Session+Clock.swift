// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension Session: ClockedSession {
    package var requestWaits: RequestWaits {
        var waits = RequestWaits()
        for request in delegate?.requestsInFlight ?? [] { request.driver.count(in: &waits) }
        return waits
    }

    package var exchangingRequests: Int? {
        configuration.hasCache || !configuration.layers.isEmpty ? nil : delegate?.requestCount ?? 0
    }

    package func afterQueuedWork(_ body: @escaping @Sendable () -> Void) {
        queue.async(execute: body)
    }
}

extension RequestDriver {
    fileprivate func count(in waits: inout RequestWaits) {
        state.withLock { state in
            switch state.lifecycle.stage {
            case .finished: break
            case .running:
                guard let task = state.task else { return waits.busy += 1 }
                switch task.state {
                case .running where task.isInTransport && !state.pendingDecision.isOpen: waits.transferring += 1
                case .suspended: break
                case .running, .canceling, .completed: waits.busy += 1
                }
            case .betweenAttempts where state.retryTimer != nil && state.waiting != nil: waits.delayed += 1
            case .completed, .concluding, .betweenAttempts: waits.busy += 1
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

// Defaults of the protocols that callers implement. Each reports the conforming type to the debug log, because a method with nearly the
// same signature compiles but is never called.

extension RequestDelegate {
    /// Does nothing but note in the debug log that the type does not implement it.
    public func requestFinished(_ request: BaseRequest) {
        request.agent.configuration.logDefault("requestFinished(_:)", of: Self.self)
    }

    /// Does nothing but note in the debug log that the type does not implement it.
    public func requestFailed(_ request: BaseRequest) {
        request.agent.configuration.logDefault("requestFailed(_:)", of: Self.self)
    }
}

extension BatchRequestDelegate {
    /// Does nothing but note in the debug log that the type does not implement it.
    public func batchRequestFinished(_ batchRequest: BatchRequest) {
        batchRequest.agent.configuration.logDefault("batchRequestFinished(_:)", of: Self.self)
    }

    /// Does nothing but note in the debug log that the type does not implement it.
    public func batchRequestFailed(_ batchRequest: BatchRequest) {
        batchRequest.agent.configuration.logDefault("batchRequestFailed(_:)", of: Self.self)
    }
}

extension ChainRequestDelegate {
    /// Does nothing but note in the debug log that the type does not implement it.
    public func chainRequestFinished(_ chainRequest: ChainRequest) {
        chainRequest.agent.configuration.logDefault("chainRequestFinished(_:)", of: Self.self)
    }

    /// Calls the method that takes the failed request, if there is one.
    public func chainRequestFailed(_ chainRequest: ChainRequest, failedStep: ChainStep) {
        if let request = chainRequest.failedRequest { chainRequestFailed(chainRequest, failedBaseRequest: request) }
    }

    /// Does nothing but note in the debug log that the type does not implement it.
    public func chainRequestFailed(_ chainRequest: ChainRequest, failedBaseRequest: BaseRequest) {
        chainRequest.agent.configuration.logDefault("chainRequestFailed(_:failedStep:)", of: Self.self)
    }
}

extension RequestAccessory {
    /// Calls the method that takes `Any`, if there is one.
    public func requestWillStart(_ request: any RunnableRequest) { requestWillStart(request as Any) }
    /// Calls the method that takes `Any`, if there is one.
    public func requestWillStop(_ request: any RunnableRequest) { requestWillStop(request as Any) }
    /// Calls the method that takes `Any`, if there is one.
    public func requestDidStop(_ request: any RunnableRequest) { requestDidStop(request as Any) }

    /// Does nothing but note in the debug log that the type does not implement it.
    public func requestWillStart(_ request: Any) { logDefault("requestWillStart(_:)", for: request) }
    /// Does nothing but note in the debug log that the type does not implement it.
    public func requestWillStop(_ request: Any) { logDefault("requestWillStop(_:)", for: request) }
    /// Does nothing but note in the debug log that the type does not implement it.
    public func requestDidStop(_ request: Any) { logDefault("requestDidStop(_:)", for: request) }

    private func logDefault(_ requirement: String, for request: Any) {
        (request as? any WaitableRequest)?.agent.configuration.logDefault(requirement, of: Self.self)
    }
}

extension UrlFilter {
    /// Returns the URL as it is.
    public func filterUrl(_ originUrl: String, with request: BaseRequest) -> String {
        request.agent.configuration.logDefault("filterUrl(_:with:)", of: Self.self)
        return originUrl
    }

    /// Changes nothing.
    public func filterUrlRequest(_ urlRequest: inout URLRequest, with request: BaseRequest) throws {
        request.agent.configuration.logDefault("filterUrlRequest(_:with:)", of: Self.self)
    }

    /// Calls the method with FWFramework's signature, if there is one.
    public func filterResponse(with request: BaseRequest) throws { try filterResponse(request) }

    /// Accepts everything.
    public func filterResponse(_ request: BaseRequest) throws {
        request.agent.configuration.logDefault("filterResponse(with:)", of: Self.self)
    }
}

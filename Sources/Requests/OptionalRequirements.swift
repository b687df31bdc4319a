// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

// The defaults of the protocols that users implement. Each tells the debug log of the type that calls it: a method with nearly the same
// signature compiles and is never called.

extension RequestDelegate {
    /// Does nothing.
    public func requestFinished(_ request: BaseRequest) {
        request.agent.configuration.noteDefault("requestFinished(_:)", of: Self.self)
    }

    /// Does nothing.
    public func requestFailed(_ request: BaseRequest) {
        request.agent.configuration.noteDefault("requestFailed(_:)", of: Self.self)
    }
}

extension BatchRequestDelegate {
    /// Does nothing.
    public func batchRequestFinished(_ batchRequest: BatchRequest) {
        batchRequest.agent.configuration.noteDefault("batchRequestFinished(_:)", of: Self.self)
    }

    /// Does nothing.
    public func batchRequestFailed(_ batchRequest: BatchRequest) {
        batchRequest.agent.configuration.noteDefault("batchRequestFailed(_:)", of: Self.self)
    }
}

extension ChainRequestDelegate {
    /// Does nothing.
    public func chainRequestFinished(_ chainRequest: ChainRequest) {
        chainRequest.agent.configuration.noteDefault("chainRequestFinished(_:)", of: Self.self)
    }

    /// Calls the method with the request that has failed, if there is one.
    public func chainRequestFailed(_ chainRequest: ChainRequest, failedStep: ChainStep) {
        if let request = chainRequest.failedRequest { chainRequestFailed(chainRequest, failedBaseRequest: request) }
    }

    /// Does nothing.
    public func chainRequestFailed(_ chainRequest: ChainRequest, failedBaseRequest: BaseRequest) {
        chainRequest.agent.configuration.noteDefault("chainRequestFailed(_:failedStep:)", of: Self.self)
    }
}

extension RequestAccessory {
    /// Does nothing.
    public func requestWillStart(_ request: any RunnableRequest) {
        request.noteDefault("requestWillStart(_:)", of: Self.self)
    }

    /// Does nothing.
    public func requestWillStop(_ request: any RunnableRequest) {
        request.noteDefault("requestWillStop(_:)", of: Self.self)
    }

    /// Does nothing.
    public func requestDidStop(_ request: any RunnableRequest) {
        request.noteDefault("requestDidStop(_:)", of: Self.self)
    }
}

extension RunnableRequest {
    fileprivate func noteDefault(_ requirement: String, of type: Any.Type) {
        (self as? any WaitableRequest)?.agent.configuration.noteDefault(requirement, of: type)
    }
}

extension UrlFilter {
    /// Returns the URL as it is.
    public func filterUrl(_ originUrl: String, with request: BaseRequest) -> String {
        request.agent.configuration.noteDefault("filterUrl(_:with:)", of: Self.self)
        return originUrl
    }

    /// Changes nothing.
    public func filterUrlRequest(_ urlRequest: inout URLRequest, with request: BaseRequest) throws {
        request.agent.configuration.noteDefault("filterUrlRequest(_:with:)", of: Self.self)
    }

    /// Accepts everything.
    public func filterResponse(with request: BaseRequest) throws {
        request.agent.configuration.noteDefault("filterResponse(with:)", of: Self.self)
    }
}

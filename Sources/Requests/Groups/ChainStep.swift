// SPDX-License-Identifier: Apache-2.0

/// One step of a chain.
public enum ChainStep: Sendable {
    /// A request.
    case request(BaseRequest)
    /// Several concurrent requests.
    case batch(BatchRequest)
    /// Another chain.
    case chain(ChainRequest)

    /// The request; `nil` for a group.
    public var request: BaseRequest? {
        if case .request(let request) = self { request } else { nil }
    }
    /// The batch; `nil` for other steps.
    public var batch: BatchRequest? {
        if case .batch(let batch) = self { batch } else { nil }
    }
    /// The error the step failed with; `nil` if it has not failed.
    public var error: (any Error)? { runnable.endingError }

    /// The request with which the step succeeded.
    var succeededRequest: BaseRequest? {
        switch self {
        case .request(let request): request
        case .batch(let batch): batch.requestArray.last
        case .chain(let chain): chain.succeedRequest
        }
    }

    /// The request with which the step failed.
    var failedRequest: BaseRequest? {
        switch self {
        case .request(let request): request
        case .batch(let batch): batch.failedRequest
        case .chain(let chain): chain.failedRequest
        }
    }

    var runnable: any WaitableRequest {
        switch self {
        case .request(let request): request
        case .batch(let batch): batch
        case .chain(let chain): chain
        }
    }
}

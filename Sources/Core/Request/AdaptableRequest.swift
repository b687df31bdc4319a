// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// What adapters see of a request, and change: its header fields if they need no more, as a `URLRequest` takes half the time of a small
/// request.
enum AdaptableRequest: Sendable {
    case headers(HTTPHeaders, HTTPMethod, url: String)
    /// A `URLRequest`, with the header fields as they were given: their order and repetitions, which Foundation's type loses.
    case request(URLRequest, given: GivenHeaders?)
}

extension RequestAdapter {
    /// Adapts what it sees of an original; `nil` if that is nothing.
    func adapted(_ original: any TaskConvertible) throws -> AdaptableRequest? {
        let headerAdapter = headerAdapter
        switch try original.adaptable(by: self, headersSuffice: headerAdapter != nil) {
        case .headers(var headers, let method, let url)?:
            try headerAdapter?.adapt(&headers, of: method, to: url)
            return .headers(headers, method, url: url)
        case .request(let request, let given)?: return .request(try adapt(request), given: given)
        case nil: return nil
        }
    }
}

extension AsyncRequestAdapter {
    /// Adapts what it sees of a request.
    nonisolated(nonsending) func adapted(
        _ seen: AdaptableRequest, for manager: SessionManager
    ) async -> Result<AdaptableRequest, any Error> {
        do {
            switch seen {
            case .headers(var headers, let method, let url):
                try await asyncHeaderAdapter?.adapt(&headers, of: method, to: url, for: manager)
                return .success(.headers(headers, method, url: url))
            case .request(let request, let given): return .success(.request(try await adapt(request, for: manager), given: given))
            }
        } catch {
            return .failure(error)
        }
    }
}

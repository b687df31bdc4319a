// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// Making a task from its original is synchronous, and adapting is one step of it. An adapter that has to be awaited takes part in it by
// stand-ins: one takes what is to be adapted out of that step, the others put the result in.

/// What an asynchronous adapter is asked to adapt.
enum AdaptationQuestion: Error {
    case headers(any AsyncHeaderAdapter, HTTPHeaders, HTTPMethod, String)
    case request(URLRequest)

    /// Awaits the adapter; returns an adapter that does the same.
    nonisolated(nonsending) func answered(
        by adapter: any AsyncRequestAdapter, for manager: SessionManager
    ) async -> Result<any RequestAdapter, any Error> {
        do {
            switch self {
            case .headers(let adapter, var headers, let method, let url):
                try await adapter.adapt(&headers, of: method, to: url, for: manager)
                return .success(AdaptedHeaders(headers: headers))
            case .request(let request):
                return .success(AdaptedRequest(request: try await adapter.adapt(request, for: manager)))
            }
        } catch {
            return .failure(error)
        }
    }
}

extension TaskConvertible {
    /// What an asynchronous adapter has to adapt; `nil` if nothing is adapted, as of a raw connection.
    ///
    /// - Throws: as ``work(in:adapter:)``.
    func adaptation(by adapter: any AsyncRequestAdapter, in session: Session) throws -> AdaptationQuestion? {
        if let adapter = adapter.asyncHeaderAdapter, let (headers, method, url) = adaptableHeaders {
            return .headers(adapter, headers, method, url)
        }
        do {
            _ = try work(in: session, adapter: AskingAdapter(members: [adapter]))
            return nil
        } catch let question as AdaptationQuestion {
            return question
        }
    }
}

/// Throws what is to be adapted.
private struct AskingAdapter: AdapterGroup {
    /// The adapter for which it asks.
    let members: [any RequestAdapter]

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest { throw AdaptationQuestion.request(urlRequest) }
}

/// Replaces the request by the adapted one.
private struct AdaptedRequest: RequestAdapter {
    let request: URLRequest

    func adapt(_ urlRequest: URLRequest) -> URLRequest { request }
}

/// Replaces the header fields by the adapted ones.
private struct AdaptedHeaders: HeaderAdapter {
    let headers: HTTPHeaders

    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) { headers = self.headers }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// Making a task from its original is synchronous, and adapting is one step of it. An adapter that has to be awaited takes part in it by two
// stand-ins: the first takes what is to be adapted out of that step, the second puts the result in.

extension TaskConvertible {
    /// Awaits the adapter, and returns the work of a task of the session; otherwise as ``work(in:adapter:)``.
    func work(
        in session: Session, awaiting adapter: any AsyncRequestAdapter, for manager: SessionManager
    ) async throws -> SessionTask.Work {
        let headerAdapter = adapter.asyncHeaderAdapter
        let question: AdaptationQuestion
        do {
            // What is not adapted, such as a raw connection, is done.
            return try work(in: session, adapter: AskingAdapter(adaptsHeaders: headerAdapter != nil))
        } catch let asked as AdaptationQuestion {
            question = asked
        }
        switch question {
        case .request(let request):
            return try work(in: session, adapter: AnsweredAdapter(answer: .request(try await adapter.adapt(request, for: manager))))
        case .headers(var headers, let method, let url):
            guard let headerAdapter else { throw question }
            try await headerAdapter.adapt(&headers, of: method, to: url, for: manager)
            return try work(in: session, adapter: AnsweredAdapter(answer: .headers(headers, method, url)))
        }
    }
}

/// What is to be adapted, or was.
private enum AdaptationQuestion: Error {
    case request(URLRequest)
    case headers(HTTPHeaders, HTTPMethod, String)
}

/// Throws what is to be adapted.
private struct AskingAdapter: HeaderAdapter {
    let adaptsHeaders: Bool

    var headerAdapter: (any HeaderAdapter)? { adaptsHeaders ? self : nil }

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest { throw AdaptationQuestion.request(urlRequest) }

    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) throws {
        throw AdaptationQuestion.headers(headers, method, url)
    }
}

/// Replaces what was adapted.
private struct AnsweredAdapter: HeaderAdapter {
    let answer: AdaptationQuestion

    var headerAdapter: (any HeaderAdapter)? {
        if case .headers = answer { self } else { nil }
    }

    func adapt(_ urlRequest: URLRequest) -> URLRequest {
        if case .request(let adapted) = answer { adapted } else { urlRequest }
    }

    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) {
        if case .headers(let adapted, _, _) = answer { headers = adapted }
    }
}

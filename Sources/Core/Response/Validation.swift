// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

// Validations run in the order in which they were added, before any handler, and again for each attempt; the first failure counts.
// They are chained before the first handler: what comes after it may come too late.

extension Request {
    /// What a validation found.
    public enum ValidationResult: Sendable {
        /// The response is acceptable.
        case success
        /// It is not, for this reason.
        case failure(any Error)

        fileprivate var error: (any Error)? {
            if case .failure(let error) = self { error } else { nil }
        }
    }

    fileprivate func addValidator(_ validator: Validator) {
        driver.state.withLock { $0.add(validator) }
    }

    fileprivate func addStatusValidator<S: Sequence>(_ statusCodes: S) where S.Element == Int {
        if let range = statusCodes as? Range<Int> {
            addValidator(.statusCodes(range))
        } else {
            let codes = Set(statusCodes)
            addValidator(.listedStatusCodes(codes))
        }
    }

    /// Adds what the request itself says of acceptable responses. Without an `Accept` every content type is.
    fileprivate func addStandardValidators() {
        addStatusValidator(200..<300)
        guard let accept = task?.currentHeader("Accept") else { return }
        addValidator(.contentTypes(accept.split(separator: ",").map { $0.prefix { $0 != ";" }.filter { !$0.isWhitespace } }))
    }
}

extension DataRequest {
    /// Judges a response: request, status and header fields, body. Runs on the session's queue.
    @preconcurrency public typealias Validation = @Sendable (URLRequest?, HTTPURLResponse, Data?) -> ValidationResult

    /// Adds a validation of the user's own. It is not asked when the transfer failed or another validation did.
    @preconcurrency @discardableResult
    public func validate(_ validation: @escaping Validation) -> Self {
        addValidator(
            .custom { request, context in
                context.response.flatMap { validation(context.request, $0, request.delegate.data).error }
            })
        return self
    }

    /// Accepts the listed statuses only; others fail with ``CurlewError/ResponseValidationFailureReason/unacceptableStatusCode(code:)``.
    @discardableResult
    public func validate<S: Sequence>(statusCode acceptableStatusCodes: S) -> Self where S.Element == Int {
        addStatusValidator(acceptableStatusCodes)
        return self
    }

    /// Accepts the listed content types only, of which either side may be `*`. An empty body passes.
    @discardableResult
    public func validate<S: Sequence>(contentType acceptableContentTypes: S) -> Self where S.Element == String {
        addValidator(.contentTypes(Array(acceptableContentTypes)))
        return self
    }

    /// Accepts the statuses 200 to 299 and the content types that the request's `Accept` asks for.
    @discardableResult
    public func validate() -> Self {
        addStandardValidators()
        return self
    }
}

extension DownloadRequest {
    /// Judges a response: request, status and header fields, the file as it was written, the file at its destination. Runs on the
    /// session's queue, when the file is where it belongs.
    @preconcurrency public typealias Validation =
        @Sendable (_ request: URLRequest?, _ response: HTTPURLResponse, _ temporaryURL: URL?, _ destinationURL: URL?) -> ValidationResult

    /// Adds a validation of the user's own. It is not asked when the transfer failed or another validation did.
    @preconcurrency @discardableResult
    public func validate(_ validation: @escaping Validation) -> Self {
        addValidator(
            .custom { request, context in
                let files = (request as? DownloadRequest)?.receiver
                return context.response.flatMap { validation(context.request, $0, files?.temporaryURL, files?.destinationURL).error }
            })
        return self
    }

    /// Accepts the listed statuses only; others fail with ``CurlewError/ResponseValidationFailureReason/unacceptableStatusCode(code:)``.
    @discardableResult
    public func validate<S: Sequence>(statusCode acceptableStatusCodes: S) -> Self where S.Element == Int {
        addStatusValidator(acceptableStatusCodes)
        return self
    }

    /// Accepts the listed content types only, of which either side may be `*`. An empty file passes.
    @discardableResult
    public func validate<S: Sequence>(contentType acceptableContentTypes: S) -> Self where S.Element == String {
        addValidator(.contentTypes(Array(acceptableContentTypes)))
        return self
    }

    /// Accepts the statuses 200 to 299 and the content types that the request's `Accept` asks for.
    @discardableResult
    public func validate() -> Self {
        addStandardValidators()
        return self
    }
}

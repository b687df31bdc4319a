// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

// Validations run in the order in which they were added, before any handler, and again for each attempt; the first failure counts. They are
// added before the first handler, because the request may finish at any time after that.

extension Request {
    /// The result of a validation.
    public enum ValidationResult: Sendable {
        /// The response is acceptable.
        case success
        /// The response is not acceptable; the request fails with this error.
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

    /// Adds validations of the status, and of the content type against the request's `Accept`; without one, any content type passes.
    fileprivate func addStandardValidators() {
        addStatusValidator(200..<300)
        guard let accept = task?.currentHeader("Accept") else { return }
        addValidator(.contentTypes(accept.split(separator: ",").map { $0.prefix { $0 != ";" }.filter { !$0.isWhitespace } }))
    }
}

extension DataRequest {
    /// Validates a response by its request, head and body. Called on the session's queue.
    @preconcurrency public typealias Validation = @Sendable (URLRequest?, HTTPURLResponse, Data?) -> ValidationResult

    /// Adds a custom validation, which is not called after a failed transfer or another failed validation.
    @preconcurrency @discardableResult
    public func validate(_ validation: @escaping Validation) -> Self {
        addValidator(
            .custom { request, context in
                context.response.flatMap { validation(context.request, $0, request.delegate.data).error }
            })
        return self
    }

    /// Accepts only these statuses; others fail with ``CurlewError/ResponseValidationFailureReason/unacceptableStatusCode(code:)``.
    @discardableResult
    public func validate<S: Sequence>(statusCode acceptableStatusCodes: S) -> Self where S.Element == Int {
        addStatusValidator(acceptableStatusCodes)
        return self
    }

    /// Accepts only these content types; type and subtype may be `*`. An empty body passes.
    @discardableResult
    public func validate<S: Sequence>(contentType acceptableContentTypes: S) -> Self where S.Element == String {
        addValidator(.contentTypes(Array(acceptableContentTypes)))
        return self
    }

    /// Accepts the statuses 200 to 299, and the content types in the request's `Accept`, if it has one.
    @discardableResult
    public func validate() -> Self {
        addStandardValidators()
        return self
    }
}

extension DownloadRequest {
    /// Validates a response by its request, head, temporary file and destination. Called on the session's queue, after the file has been
    /// moved to its destination.
    @preconcurrency public typealias Validation =
        @Sendable (_ request: URLRequest?, _ response: HTTPURLResponse, _ temporaryURL: URL?, _ destinationURL: URL?) -> ValidationResult

    /// Adds a custom validation, which is not called after a failed transfer or another failed validation.
    @preconcurrency @discardableResult
    public func validate(_ validation: @escaping Validation) -> Self {
        addValidator(
            .custom { request, context in
                let files = (request as? DownloadRequest)?.receiver
                return context.response.flatMap { validation(context.request, $0, files?.temporaryURL, files?.destinationURL).error }
            })
        return self
    }

    /// Accepts only these statuses; others fail with ``CurlewError/ResponseValidationFailureReason/unacceptableStatusCode(code:)``.
    @discardableResult
    public func validate<S: Sequence>(statusCode acceptableStatusCodes: S) -> Self where S.Element == Int {
        addStatusValidator(acceptableStatusCodes)
        return self
    }

    /// Accepts only these content types; type and subtype may be `*`. An empty file passes.
    @discardableResult
    public func validate<S: Sequence>(contentType acceptableContentTypes: S) -> Self where S.Element == String {
        addValidator(.contentTypes(Array(acceptableContentTypes)))
        return self
    }

    /// Accepts the statuses 200 to 299, and the content types in the request's `Accept`, if it has one.
    @discardableResult
    public func validate() -> Self {
        addStandardValidators()
        return self
    }
}

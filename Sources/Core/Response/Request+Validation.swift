// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

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

    /// Adds an asynchronous validation, and creates the request's task for it unless it has one.
    fileprivate func addAsyncValidator(
        _ validation: @escaping @Sendable (Request, ResponseContext) async throws -> ValidationResult?
    ) {
        driver.beginSteps()
        addValidator(
            .awaited { request, context in
                do {
                    return try await validation(request, context)?.error
                } catch {
                    return error
                }
            })
    }

    fileprivate func addStatusValidator(_ statusCodes: some Sequence<Int>, _ decoder: RefusalDecoder? = nil) {
        addValidator(.statusCodes(StatusCodes(statusCodes), decoder))
    }

    /// Adds validations of the status, and of the content type against the request's `Accept`; without one, any content type passes.
    fileprivate func addStandardValidators() {
        addStatusValidator(200..<300)
        guard let accept = task?.currentHeader("Accept") else { return }
        addValidator(.contentTypes(accept.splitScalars(separator: ",").map(\.mediaType)))
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

    /// Adds a custom asynchronous validation, which is not called after a failed transfer or another failed validation.
    ///
    /// - Parameter validation: validates the response by its request, head and body, in the request's task. An error that it throws fails
    ///   the request. It is cancelled with the request.
    @discardableResult
    public func validate(
        _ validation: @escaping @Sendable (URLRequest?, HTTPURLResponse, Data?) async throws -> ValidationResult
    ) -> Self {
        addAsyncValidator { request, context in
            guard let response = context.response else { return nil }
            return try await validation(context.request, response, request.delegate.data)
        }
        return self
    }

    /// Accepts only these statuses; others fail with ``CurlewError/ResponseValidationFailureReason/unacceptableStatusCode(code:)``.
    @discardableResult
    public func validate<S: Sequence>(statusCode acceptableStatusCodes: S) -> Self where S.Element == Int {
        addStatusValidator(acceptableStatusCodes)
        return self
    }

    /// Accepts only these statuses, and decodes the body of a response with another one as the API's error.
    ///
    /// ```swift
    /// do {
    ///     return try await manager.request(url).validate(decoding: APIError.self).serializingDecodable(User.self).value
    /// } catch {
    ///     guard let problem = error.asCurlewError?.decodedBody(as: APIError.self) else { throw error }
    ///     show(problem.message)
    /// }
    /// ```
    ///
    /// The error is that of the validation, with the value as ``/CurlewHTTP/CurlewError/decodedBody(as:)``, also for retriers; its request has
    /// status and fields. A body that is empty, too large or not of this type leaves it without a value. The decoder is called on the
    /// session's queue. Of several types, the first that the body can be decoded as counts.
    ///
    /// A body that is read as it is received is refused at its head: up to this size is then received for the decoder in at most ten
    /// seconds, and nothing for the reader. One that is handed to a closure by a request for data is not decoded.
    ///
    /// - Parameters:
    ///   - acceptableStatusCodes: 200 to 299 by default.
    ///   - type: the type of the API's errors.
    ///   - decoder: a `JSONDecoder` by default.
    ///   - maximumSize: the largest body that is decoded, in bytes; 1 MiB by default.
    @discardableResult
    public func validate<Body: Decodable & Sendable>(
        statusCode acceptableStatusCodes: some Sequence<Int> = 200..<300, decoding type: Body.Type,
        decoder: any DataDecoder = JSONDecoder(), maximumSize: Int = 1 << 20
    ) -> Self {
        addStatusValidator(acceptableStatusCodes, RefusalDecoder(type, decoder, limit: maximumSize))
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

    /// Adds a custom asynchronous validation, which is not called after a failed transfer or another failed validation.
    ///
    /// - Parameter validation: validates the response by its request, head, temporary file and destination, in the request's task. A
    ///   destination that a closure returns has its file by then; another one gets it once the response is valid. An error that it throws
    ///   fails the request. It is cancelled with the request.
    @discardableResult
    public func validate(
        _ validation:
            @escaping @Sendable (
                _ request: URLRequest?, _ response: HTTPURLResponse, _ temporaryURL: URL?, _ destinationURL: URL?
            ) async throws -> ValidationResult
    ) -> Self {
        addAsyncValidator { request, context in
            guard let response = context.response else { return nil }
            let files = (request as? DownloadRequest)?.receiver
            return try await validation(context.request, response, files?.temporaryURL, files?.destinationURL)
        }
        return self
    }

    /// Accepts only these statuses; others fail with ``CurlewError/ResponseValidationFailureReason/unacceptableStatusCode(code:)``.
    @discardableResult
    public func validate<S: Sequence>(statusCode acceptableStatusCodes: S) -> Self where S.Element == Int {
        addStatusValidator(acceptableStatusCodes)
        return self
    }

    /// Accepts only these statuses, and decodes the body of a response with another one as the API's error. As
    /// ``DataRequest/validate(statusCode:decoding:decoder:maximumSize:)``; the body is read from its file.
    @discardableResult
    public func validate<Body: Decodable & Sendable>(
        statusCode acceptableStatusCodes: some Sequence<Int> = 200..<300, decoding type: Body.Type,
        decoder: any DataDecoder = JSONDecoder(), maximumSize: Int = 1 << 20
    ) -> Self {
        addStatusValidator(acceptableStatusCodes, RefusalDecoder(type, decoder, limit: maximumSize))
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

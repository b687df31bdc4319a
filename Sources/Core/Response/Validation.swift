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

    /// Validates a response by its request, head and body, asynchronously. Runs in the request's task.
    public typealias AsyncValidation = @Sendable (URLRequest?, HTTPURLResponse, Data?) async throws -> ValidationResult

    /// Adds a custom asynchronous validation, which is not called after a failed transfer or another failed validation.
    ///
    /// An error that it throws fails the request. It is cancelled with the request.
    @discardableResult
    public func validate(_ validation: @escaping AsyncValidation) -> Self {
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

    /// Validates a response by its request, head, temporary file and destination, asynchronously. Runs in the request's task. A destination
    /// that a closure returns has its file by then; another one gets it once the response is valid.
    public typealias AsyncValidation =
        @Sendable (_ request: URLRequest?, _ response: HTTPURLResponse, _ temporaryURL: URL?, _ destinationURL: URL?) async throws ->
        ValidationResult

    /// Adds a custom asynchronous validation, which is not called after a failed transfer or another failed validation.
    ///
    /// An error that it throws fails the request. It is cancelled with the request.
    @discardableResult
    public func validate(_ validation: @escaping AsyncValidation) -> Self {
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

// MARK: - Validators

/// A validation of a request's response.
enum Validator: Sendable {
    /// The status is in this range.
    case statusCodes(Range<Int>)
    /// The status is one of these.
    case listedStatusCodes(Set<Int>)
    /// The content type is one of these.
    case contentTypes([String])
    /// The user's closure, which must run on the session's queue.
    case custom(@Sendable (Request, ResponseContext) -> (any Error)?)
    /// The user's asynchronous closure, which runs in the request's task.
    case awaited(Awaited)

    typealias Awaited = @Sendable (Request, ResponseContext) async -> (any Error)?

    var isCustom: Bool {
        switch self {
        case .custom, .awaited: true
        default: false
        }
    }

    /// Whether a response without a body passes unchecked.
    var needsBody: Bool {
        if case .contentTypes = self { true } else { false }
    }

    /// Returns the error for a response that is not acceptable; `nil` if it is, or there is no response.
    func validate(_ request: Request) -> (any Error)? {
        if case .custom(let validation) = self {
            let context = request.context
            return context.head == nil ? nil : validation(request, context)
        }
        guard !needsBody || request.hasBody, let head = request.responseHead else { return nil }
        return failure(of: head)
    }

    /// Returns the error for a head that is not acceptable; `nil` if it is, and for a custom validation.
    func failure(of head: ResponseHead) -> CurlewError? {
        switch self {
        case .statusCodes(let range): range.contains(head.statusCode) ? nil : .unacceptableStatus(of: head)
        case .listedStatusCodes(let codes): codes.contains(head.statusCode) ? nil : .unacceptableStatus(of: head)
        case .contentTypes(let acceptable):
            MediaType.failure(of: head.value(for: "Content-Type"), among: acceptable).map { .responseValidationFailed(reason: $0) }
        case .custom, .awaited: nil
        }
    }
}

extension CurlewError {
    fileprivate static func unacceptableStatus(of head: ResponseHead) -> CurlewError {
        .responseValidationFailed(reason: .unacceptableStatusCode(code: head.statusCode))
    }
}

/// A media type or range without parameters (RFC 9110, sections 8.3.1 and 12.5.1).
struct MediaType: Equatable {
    let type: String
    let subtype: String

    /// `nil` for a string without a slash.
    init?(_ string: some StringProtocol) {
        let essence = string.prefix { $0 != ";" }.filter { !$0.isWhitespace }
        let parts = essence.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        type = String(parts[0])
        subtype = String(parts[1])
    }

    var acceptsEverything: Bool { type == "*" && subtype == "*" }

    func accepts(_ other: MediaType) -> Bool {
        (type == "*" || type.equalsIgnoringASCIICase(other.type)) && (subtype == "*" || subtype.equalsIgnoringASCIICase(other.subtype))
    }

    static func failure(of contentType: String?, among acceptable: [String]) -> CurlewError.ResponseValidationFailureReason? {
        let ranges = acceptable.compactMap { MediaType($0) }
        if ranges.contains(where: \.acceptsEverything) { return nil }
        guard let contentType, let actual = MediaType(contentType) else {
            return .missingContentType(acceptableContentTypes: acceptable)
        }
        guard !ranges.contains(where: { $0.accepts(actual) }) else { return nil }
        return .unacceptableContentType(acceptableContentTypes: acceptable, responseContentType: actual.type + "/" + actual.subtype)
    }
}

// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// Runs a request of a service to completion: attempts, retriers, hooks.
struct ServiceExecution<Request: ServiceRequest, Service: HTTPService>: Sendable {
    /// The outcome of a successful request.
    struct Success: Sendable {
        let result: Request.Result
        /// The header fields of the response; empty if a hook supplied the result.
        let header: HTTPHeaders
        /// The URLs of the request and, after redirects, of the response.
        let requestURL: URL?
        let responseURL: URL?
    }

    /// A request that is ready to be sent.
    private struct Prepared {
        let urlRequest: URLRequest
        let body: any HTTPBody
        /// Whether the body is a file, or a form encoded into one, and so isn't part of `urlRequest`.
        let isFromFile: Bool
    }

    let request: Request
    let service: Service

    /// What is known of the attempts so far.
    private struct Progress {
        /// Whether the hook was asked for a result, as it is before the request is sent for the first time.
        var isScheduled = false
        /// How often the request was sent, by the retriers of the session as well.
        var sentCount = 0
        /// The delay that the last response has asked for.
        var retryAfter: Duration?
    }

    /// Runs the request: all attempts, to a result or the final error. Hooks are called from here only.
    func run() async -> Result<Success, ServiceError> {
        // Read once, as hooks keep the result for what was sent.
        let options = request.effectiveOptions(for: service)
        guard let deadline = Deadline.earliest(options?.deadline) else { return await attempts(options, until: nil) }
        return await Deadline.$current.withValue(deadline) { await attempts(options, until: deadline) }
    }

    private func attempts(_ options: RequestOptions?, until deadline: Deadline?) async -> Result<Success, ServiceError> {
        let manager = service.sessionManager
        var retrier: (any ServiceRetrier)?
        var attempt = 0
        var progress = Progress()
        while true {
            var prepared: Prepared?
            let earlier = progress.sentCount
            progress.retryAfter = nil
            do {
                let ready = try await bounded(by: deadline) { try await prepare() }
                prepared = ready
                let sender = CachingServiceHook.Sender { manager.senderIdentity(of: ready.urlRequest, options) }
                if progress.isScheduled {
                    // No hook is asked before it, and the response may change the cookies.
                    _ = sender.before()
                } else {
                    progress.isScheduled = true
                    ServiceLog.request(ready.urlRequest, ready.body)
                    let supplied = try await bounded(by: deadline) {
                        await CachingServiceHook.$sender.withValue(sender) {
                            await service.hook.onSchedule(request, ready.urlRequest)
                        }
                    }
                    if let result = supplied {
                        return .success(Success(result: result, header: [:], requestURL: ready.urlRequest.url, responseURL: nil))
                    }
                }
                let success = try await send(ready, by: manager, options, &progress)
                await CachingServiceHook.$sender.withValue(sender) {
                    await service.hook.onSuccess(request, ready.urlRequest, result: success.result)
                }
                return .success(success)
            } catch {
                // Cancellation can surface as another error, for example one that the user's code throws when it is interrupted.
                let error = (Task.isCancelled ? .cancelled : ServiceError(error)).describing(prepared?.urlRequest, after: earlier)
                let decision = await BackoffServiceRetrier.$retryAfter.withValue(progress.retryAfter) {
                    await self.decision(after: error, attempt, &retrier, until: deadline)
                }
                guard case .doNotRetry(let final) = decision else {
                    attempt += 1
                    continue
                }
                let last = Task.isCancelled ? .cancelled : final
                let named = last.request == nil ? last.describing(prepared?.urlRequest, after: earlier) : last
                return .failure(await fail(with: named, prepared?.urlRequest))
            }
        }
    }

    private enum Decision {
        case retry
        case doNotRetry(ServiceError)
    }

    private func decision(
        after error: ServiceError, _ attempt: Int, _ retrier: inout (any ServiceRetrier)?, until deadline: Deadline?
    ) async -> Decision {
        if case .cancelled = error { return .doNotRetry(error) }
        if let deadline, deadline.hasPassed, case .timeout = error { return .doNotRetry(error) }
        let asked = retrier ?? service.retrierFactory.create(for: request)
        retrier = asked
        guard attempt == 0 || asked.allowsMultipleRetries else { return .doNotRetry(error) }
        do {
            let isRetried = try await bounded(by: deadline) { await asked.retry(request, failingWith: error) }
            return isRetried && !Task.isCancelled ? .retry : .doNotRetry(error)
        } catch {
            return .doNotRetry(ServiceError(error))
        }
    }

    /// Runs code of the service or the user until the deadline.
    ///
    /// - Throws: what the code throws; the deadline's error once that has passed.
    private func bounded<Value: Sendable>(
        by deadline: Deadline?, _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let deadline else { return try await operation() }
        return try await withLimit(throwing: Deadline.failure(of: "", attempt: 1, during: .preparing), operation) {
            try await Task.sleep(for: deadline.remaining)
        }
    }

    private func fail(with error: ServiceError, _ urlRequest: URLRequest?) async -> ServiceError {
        ServiceLog.failure(urlRequest, error)
        await service.hook.onFailure(request, urlRequest, error: error)
        return error
    }

    // MARK: Building

    /// Builds the request of an attempt: URL, method, header, body, then the changes of ``ServiceRequest/prepare(_:)``.
    private func prepare() async throws -> Prepared {
        var urlRequest = try await request.makeHead(for: service, request.method)
        let body = request.body
        do {
            try body.add(to: &urlRequest)
        } catch {
            throw error as? ServiceError ?? .encodingFailed(error)
        }
        let given = urlRequest
        urlRequest = try request.prepare(given)
        var isFromFile = body.fileURL != nil || body is HTTPData.Multipart && given.httpBody == nil
        // A body set by the request's own `prepare(_:)` replaces the file.
        if isFromFile { isFromFile = urlRequest.httpBody == given.httpBody && urlRequest.httpBodyStream === given.httpBodyStream }
        try validate(urlRequest, isFromFile: isFromFile)
        return Prepared(urlRequest: urlRequest, body: body, isFromFile: isFromFile)
    }

    private func validate(_ urlRequest: URLRequest, isFromFile: Bool) throws(ServiceError) {
        let hasBody = urlRequest.httpBody.map { !$0.isEmpty } ?? false || urlRequest.httpBodyStream != nil || isFromFile
        guard hasBody, let method = urlRequest.httpMethod, ["GET", "DELETE", "HEAD"].contains(method) else { return }
        throw .invalidRequest(message: "A \(method) request must not have a body.")
    }

    // MARK: Sending

    private func send(
        _ prepared: Prepared, by manager: SessionManager, _ options: RequestOptions?, _ progress: inout Progress
    ) async throws -> Success {
        // Validated, so that the retriers of the session and of the options see a status that is not accepted.
        let dataRequest = validated(try await start(prepared, by: manager, options))
        defer { progress.sentCount += Int(dataRequest.retryCount) + 1 }
        let response = try await withTimeout(request.timeout, dataRequest) {
            await dataRequest.serializingResponse(using: Self.plain).response
        }
        let refusal = Self.refusal(of: response, of: dataRequest)
        let data = try refusal != nil ? response.data ?? Data() : response.result.get()
        guard let head = response.responseHead else { throw ServiceError.invalidResponse }
        let headers = head.headers
        ServiceLog.response(prepared.urlRequest, head.statusCode, headers, data)
        if let refusal {
            progress.retryAfter = RetryAfter(head)?.delay
            throw ServiceError.requestFailed(statusCode: head.statusCode, response: data, in: refusal.request)
        }
        return Success(
            result: try request.decode(data), header: headers, requestURL: prepared.urlRequest.url,
            responseURL: response.response?.url)
    }

    private func validated(_ dataRequest: DataRequest) -> DataRequest {
        guard let type = service.errorBodyType else { return dataRequest.validate(statusCode: request.acceptedStatusCodes) }
        return dataRequest.validate(statusCode: request.acceptedStatusCodes, decoding: type, decoder: service.errorBodyDecoder)
    }

    private func start(_ prepared: Prepared, by manager: SessionManager, _ options: RequestOptions?) async throws -> DataRequest {
        guard prepared.isFromFile else { return manager.request(prepared.urlRequest, options: options) }
        if let fileURL = prepared.body.fileURL { return manager.upload(fileURL, with: prepared.urlRequest, options: options) }
        if let form = prepared.body as? HTTPData.Multipart {
            return try await manager.upload(form: form, with: prepared.urlRequest, options: options)
        }
        return manager.request(prepared.urlRequest, options: options)
    }

    /// The error of the validation that has refused the status of a response; `nil` if none has.
    private static func refusal(of response: DataResponse<Data>, of dataRequest: DataRequest) -> CurlewError? {
        guard let error = response.error else { return nil }
        // A session may translate errors, as for Alamofire's `AFError`; `ownError` is the original.
        let own = error as? CurlewError ?? dataRequest.delegate.ownError as? CurlewError
        return if case .responseValidationFailed(.unacceptableStatusCode, _)? = own { own } else { nil }
    }

    /// Returns the body unchanged; an empty body is valid.
    private static var plain: DataResponseSerializer<Data> {
        DataResponseSerializer { _, _, data, error in error.map { .failure($0) } ?? .success(data ?? Data()) }
    }

    /// Awaits a response, and cancels the request if that takes longer than the timeout.
    private func withTimeout<Response: Sendable>(
        _ timeout: Duration?, _ dataRequest: DataRequest, _ response: @escaping @Sendable () async -> Response
    ) async throws -> Response {
        guard let timeout else { return await response() }
        // Cancelled after the decision, so that the cancellation is not the result.
        return try await withLimit(throwing: ServiceError.timeout) {
            await withTaskCancellationHandler(operation: response) { dataRequest.cancel() }
        } limit: {
            try await Task.sleep(for: timeout)
        }
    }
}

extension SessionManager {
    /// Uploads a form from a temporary file.
    fileprivate func upload(
        form: HTTPData.Multipart, with urlRequest: URLRequest, options: RequestOptions?
    ) async throws -> UploadRequest {
        try await withCheckedThrowingContinuation { continuation in
            upload(multipartFormData: form.fill, with: urlRequest, options: options, queue: .global()) { result in
                switch result {
                case .success(let request, _, _): continuation.resume(returning: request)
                case .failure(let error): continuation.resume(throwing: error)
                }
            }
        }
    }
}

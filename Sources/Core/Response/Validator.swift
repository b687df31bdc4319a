// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A validation of a request's response.
enum Validator: Sendable {
    /// The status is one of these. The decoder, if there is one, decodes the body of a response with another one.
    case statusCodes(StatusCodes, RefusalDecoder? = nil)
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

    /// The decoder of the body of a refused response with a status; `nil` for none, and for a status that is accepted.
    func decoder(for status: Int) -> RefusalDecoder? {
        if case .statusCodes(let codes, let decoder) = self, !codes.contains(status) { decoder } else { nil }
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
        case .statusCodes(let codes, _): codes.contains(head.statusCode) ? nil : .unacceptableStatus(of: head)
        case .contentTypes(let acceptable):
            MediaType.failure(of: head.value(for: "Content-Type"), among: acceptable).map { .responseValidationFailed(reason: $0) }
        case .custom, .awaited: nil
        }
    }
}

/// Acceptable statuses.
enum StatusCodes: Sendable {
    case range(Range<Int>)
    case listed(Set<Int>)

    init(_ codes: some Sequence<Int>) { self = (codes as? Range<Int>).map { .range($0) } ?? .listed(Set(codes)) }

    func contains(_ code: Int) -> Bool {
        switch self {
        case .range(let range): range.contains(code)
        case .listed(let codes): codes.contains(code)
        }
    }
}

extension CurlewError {
    fileprivate static func unacceptableStatus(of head: ResponseHead) -> CurlewError {
        .responseValidationFailed(reason: .unacceptableStatusCode(code: head.statusCode))
    }
}

extension MediaType {
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

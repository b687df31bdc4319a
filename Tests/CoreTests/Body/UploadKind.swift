// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewCore

/// The kinds of request that have a body.
enum UploadKind: CaseIterable, Sendable {
    case data, file, stream
    /// A form in memory, and one in a file.
    case smallForm, largeForm
    /// A form that is handed over.
    case form
    /// A closure that makes a sequence.
    case sequence
    /// A data request with a body of bytes, and with one of a stream.
    case requestWithData, requestWithStream

    /// Whether adapters and redirect closures see the bytes.
    var showsBytes: Bool { [.data, .smallForm, .requestWithData].contains(self) }

    /// Whether the body is a stream, which can be sent once.
    var isStream: Bool { self == .stream || self == .requestWithStream }

    static let formText = "--B\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nsecret\r\n--B--\r\n"

    /// What is sent.
    var body: Data { Data(([.smallForm, .largeForm, .form].contains(self) ? Self.formText : "secret").utf8) }

    /// Makes a request of the kind, with a `Content-Type`.
    func start(
        _ manager: SessionManager, in directory: TemporaryDirectory, to url: String = "http://mock/", method: HTTPMethod = .post
    ) async throws -> DataRequest {
        var request = try URLRequest(url: url, method: method, headers: ["Content-Type": "text/secret"])
        switch self {
        case .data: return manager.upload(body, with: request)
        case .file: return manager.upload(try directory.write(body, to: "secret"), with: request)
        case .stream: return manager.upload(InputStream(data: body), with: request)
        case .form: return manager.upload(Self.makeForm(), with: request)
        case .sequence: return manager.upload({ [body] in AsyncStream(pieces: [body.prefix(2), body.dropFirst(2)]) }, with: request)
        case .smallForm, .largeForm: return try await uploadForm(manager, request)
        case .requestWithData: request.httpBody = body
        case .requestWithStream: request.httpBodyStream = InputStream(data: body)
        }
        return manager.request(request)
    }

    private static func makeForm() -> MultipartFormData {
        let form = MultipartFormData()
        fill(form)
        return form
    }

    @Sendable private static func fill(_ form: MultipartFormData) {
        form.boundary = "B"
        form.append(Data("secret".utf8), withName: "name")
    }

    private func uploadForm(_ manager: SessionManager, _ urlRequest: URLRequest) async throws -> DataRequest {
        let results = Inbox<SessionManager.MultipartFormDataEncodingResult>()
        manager.upload(
            multipartFormData: Self.fill, usingThreshold: self == .smallForm ? 1_000 : 0, with: urlRequest
        ) { results.put($0) }
        switch await results[0] {
        case .success(let request, _, _): return request
        case .failure(let error): throw error
        }
    }
}

extension AsyncStream where Element: Sendable {
    /// Makes a stream of pieces that are there already.
    init(pieces: [Element]) {
        self.init { continuation in
            for piece in pieces { continuation.yield(piece) }
            continuation.finish()
        }
    }
}

/// All pairs of two lists.
func pairs<First, Second>(_ first: [First], _ second: [Second]) -> [(First, Second)] {
    first.flatMap { one in second.map { (one, $0) } }
}

// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The body of the planned request, in a form that both streamed requests and downloads accept.
struct PlannedBody: ParameterEncoding {
    let body: RequestPlan.Body
    /// What keeps the bytes of a body that can be read only once; `nil` unless they are to be shown.
    private(set) var copy: SentBytes?
    /// The rate at which it is sent; `nil` for no limit.
    private var bytesPerSecond: Int64?
    /// The length of a file on standard input, from its offset on; `nil` for a pipe.
    private let inputLength: Int64?
    /// One for all attempts, so that what is shown is what is sent.
    private let boundary = MultipartFormData().boundary

    init(_ plan: RequestPlan, isShown: Bool) {
        body = plan.body
        copy = nil
        inputLength = plan.body == .standardInput ? StandardInput.length : nil
        if isShown, isReadOnce { copy = SentBytes() }
    }

    func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        var request = try urlRequest.asURLRequest()
        switch body {
        case .none: break
        case .bytes(let data):
            if bytesPerSecond == nil { request.httpBody = data } else { request.httpBodyStream = InputStream(data: data) }
        case .file(let path): request.httpBodyStream = InputStream(fileAtPath: path)
        case .standardInput: request.httpBodyStream = DescriptorStream(descriptor: 0, copy: copy)
        case .stream(let path): request.httpBodyStream = DescriptorStream(descriptor: try Self.descriptor(path), copy: copy)
        // Sent by an upload of the form.
        case .parts: break
        }
        if let bytesPerSecond, let stream = request.httpBodyStream {
            request.httpBodyStream = PacedStream(stream, bytesPerSecond: bytesPerSecond)
        }
        return request
    }

    /// The same, sent at most at a rate.
    func paced(_ bytesPerSecond: Int64?) -> PlannedBody {
        var body = self
        body.bytesPerSecond = bytesPerSecond
        return body
    }

    private static func descriptor(_ path: String) throws -> Int32 {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        return descriptor
    }

    /// Makes the form of `--multipart`.
    func form(_ fields: [RequestItem]) -> MultipartFormData {
        let form = MultipartFormData()
        form.boundary = boundary
        for field in fields {
            switch field {
            case .field(let name, let value): form.append(Data(value.utf8), withName: name)
            case .data(let name, let data, let type?, let fileName?):
                form.append(data, withName: name, fileName: fileName, mimeType: type)
            case .data(let name, let data, let type?, nil): form.append(data, withName: name, mimeType: type)
            case .data(let name, let data, nil, nil): form.append(data, withName: name)
            case .data(let name, let data, nil, let fileName?):
                func shown(_ text: String) -> String { text.replacingScalars("\"", with: "%22").filterScalars { $0 != "\r" && $0 != "\n" } }
                let disposition = "form-data; name=\"\(shown(name))\"; filename=\"\(shown(fileName))\""
                form.append(
                    InputStream(data: data), withLength: UInt64(data.count),
                    headers: [HTTPHeader(name: "Content-Disposition", value: disposition)])
            case .json(let name, let text): form.append(Data(text.utf8), withName: name, mimeType: "application/json")
            case .typedField(let name, let value, let type): form.append(Data(value.utf8), withName: name, mimeType: type)
            case .file(let name, let path, let type, let fileName):
                let file = URL(fileURLWithPath: path)
                // A pipe has no size, so that its bytes are needed before anything is sent.
                if InputFile.isStream(path), let data = InputFile.contents(path) {
                    form.append(
                        data, withName: name, fileName: fileName ?? file.lastPathComponent, mimeType: type ?? "application/octet-stream")
                } else if type != nil || fileName != nil {
                    form.append(
                        file, withName: name, fileName: fileName ?? file.lastPathComponent, mimeType: type ?? "application/octet-stream")
                } else {
                    form.append(file, withName: name)
                }
            default: break
            }
        }
        return form
    }

    // MARK: Showing

    /// What `--print B` shows: of a body that is read once, what was sent so far; `nil` for what is too large to format.
    var shown: Data? {
        switch body {
        case .none: return nil
        case .bytes(let data): return data
        case .file(let path):
            let size = (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? .max
            return size <= BodyPrinter.maximumFormattedSize ? InputFile.contents(path) : nil
        case .standardInput, .stream: return copy?.data
        case .parts(let fields):
            // The pipe has been read for the form that is sent.
            for case .file(_, let path, _, _) in fields where InputFile.isStream(path) { return nil }
            let form = form(fields)
            return form.contentLength <= BodyPrinter.maximumFormattedSize ? try? form.encode() : nil
        }
    }

    /// What is sent, but for a body that can be read only once.
    func bytes() throws -> Data {
        switch body {
        case .none, .standardInput, .stream: return Data()
        case .bytes(let data): return data
        case .file(let path):
            guard let data = InputFile.contents(path) else { throw FileFailure(path: path, code: errno) }
            return data
        case .parts(let fields): return try form(fields).encode()
        }
    }

    /// The type of a form, which names its boundary.
    var contentType: String? {
        guard case .parts = body else { return nil }
        return "multipart/form-data; boundary=\(boundary)"
    }

    /// Whether the body is a stream, whose length is unknown and which can't be sent again.
    var isReadOnce: Bool {
        switch body {
        case .standardInput, .stream: true
        case .none, .bytes, .file, .parts: false
        }
    }

    /// The length of the body; `nil` for a stream, for a form that is not shown, and without a body.
    var length: Int64? {
        switch body {
        case .none, .stream: nil
        case .standardInput: inputLength
        case .bytes(let data): Int64(data.count)
        case .file(let path): (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int).map(Int64.init)
        case .parts: (shown?.count).map(Int64.init)
        }
    }

    /// Reads what would be sent, up to the size that is shown.
    func readCopy() throws {
        guard let copy else { return }
        var descriptor: Int32 = 0
        if case .stream(let path) = body { descriptor = try Self.descriptor(path) }
        defer { if descriptor != 0 { close(descriptor) } }
        let stream = DescriptorStream(descriptor: descriptor, copy: copy)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while copy.data.count < BodyPrinter.maximumFormattedSize, stream.read(&buffer, maxLength: buffer.count) > 0 {}
    }
}

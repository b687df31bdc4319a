// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import Foundation

// The parts of the program, as they stand in programs written for Alamofire 4: nothing here is Curlew's but the import.

struct Book {
    let name: String
    let numbers: [Int]

    init?(json: Any) {
        guard let object = json as? [String: Any], let name = object["name"] as? String, let numbers = object["numbers"] as? [Int] else {
            return nil
        }
        self.name = name
        self.numbers = numbers
    }
}

enum ShopError: Error {
    case unexpectedContent
    case soldOut(Int)
}

enum ShopRouter: URLRequestConvertible {
    static var baseURLString = ""

    case book
    case search(words: String, page: Int)
    case order(items: [String])

    var method: HTTPMethod {
        switch self {
        case .order: return .post
        default: return .get
        }
    }

    func asURLRequest() throws -> URLRequest {
        let url = try ShopRouter.baseURLString.asURL()
        switch self {
        case .book:
            return try URLRequest(url: url.appendingPathComponent("json"), method: method)
        case let .search(words, page):
            let request = try URLRequest(url: url.appendingPathComponent("echo"), method: method, headers: ["X-Search": "yes"])
            return try URLEncoding.default.encode(request, with: ["q": words, "page": page, "sort": ["price", "name"]])
        case let .order(items):
            let request = try URLRequest(url: url.appendingPathComponent("echo"), method: method)
            return try JSONEncoding.default.encode(request, with: ["items": items])
        }
    }
}

/// Adds a token to each request, and fetches another one when the server does not take it any more.
class TokenHandler: RequestAdapter, RequestRetrier {
    private let lock = NSLock()
    private var token = "stale"
    private var isRefreshing = false
    private var waiting: [RequestRetryCompletion] = []
    private let baseURLString: String
    private(set) var refreshCount = 0
    private(set) var errors: [Error] = []

    init(baseURLString: String) {
        self.baseURLString = baseURLString
    }

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        guard let url = urlRequest.url?.absoluteString, url.hasPrefix(baseURLString) else { return urlRequest }
        var urlRequest = urlRequest
        lock.lock()
        defer { lock.unlock() }
        urlRequest.setValue("Bearer " + token, forHTTPHeaderField: "Authorization")
        return urlRequest
    }

    func should(_ manager: SessionManager, retry request: Request, with error: Error, completion: @escaping RequestRetryCompletion) {
        lock.lock()
        defer { lock.unlock() }
        errors.append(error)
        guard let response = request.task?.response as? HTTPURLResponse, response.statusCode == 401, request.retryCount < 3 else {
            return completion(false, 0.0)
        }
        // Sent before the refresh, answered after it.
        guard request.request?.value(forHTTPHeaderField: "Authorization") == "Bearer " + token else { return completion(true, 0.0) }
        waiting.append(completion)
        if !isRefreshing { refresh() }
    }

    private func refresh() {
        isRefreshing = true
        Alamofire.request(baseURLString + "/json").validate().responseJSON { [weak self] response in
            guard let strongSelf = self else { return }
            strongSelf.lock.lock()
            defer { strongSelf.lock.unlock() }
            if response.result.isSuccess { strongSelf.token = "fresh" }
            strongSelf.refreshCount += 1
            strongSelf.isRefreshing = false
            strongSelf.waiting.forEach { $0(response.result.isSuccess, 0.0) }
            strongSelf.waiting.removeAll()
        }
    }
}

/// A serializer as a type of its own.
struct LineCountSerializer: DataResponseSerializerProtocol {
    var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, Error?) -> Result<Int> {
        return { _, response, data, error in
            if let error = error { return .failure(error) }
            return Request.serializeResponseString(encoding: .utf8, response: response, data: data, error: nil)
                .map { $0.components(separatedBy: "\n").count }
        }
    }
}

extension DataRequest {
    static func bookResponseSerializer() -> DataResponseSerializer<Book> {
        return DataResponseSerializer { request, response, data, error in
            if let error = error { return .failure(error) }
            let result = DataRequest.jsonResponseSerializer(options: .allowFragments).serializeResponse(request, response, data, nil)
            guard case let .success(json) = result else { return .failure(result.error ?? ShopError.unexpectedContent) }
            guard let book = Book(json: json) else { return .failure(ShopError.unexpectedContent) }
            return .success(book)
        }
    }

    @discardableResult
    func responseBook(queue: DispatchQueue? = nil, completionHandler: @escaping (DataResponse<Book>) -> Void) -> Self {
        return response(queue: queue, responseSerializer: DataRequest.bookResponseSerializer(), completionHandler: completionHandler)
    }
}

extension Alamofire.Request {
    var isRetried: Bool { return retryCount > 0 }
}

/// What a program says of an error: no `default` for Alamofire's, then Foundation's.
func summary(of error: Error?) -> String {
    guard let error = error else { return "none" }
    if let error = error as? AFError {
        switch error {
        case let .invalidURL(url):
            return "invalid URL \(url)"
        case let .parameterEncodingFailed(reason):
            switch reason {
            case .missingURL: return "parameters: no URL"
            case .jsonEncodingFailed: return "parameters: JSON"
            case .propertyListEncodingFailed: return "parameters: property list"
            }
        case let .multipartEncodingFailed(reason):
            switch reason {
            case .bodyPartURLInvalid, .bodyPartFilenameInvalid, .bodyPartFileNotReachable, .bodyPartFileNotReachableWithError:
                return "multipart: no file"
            case .bodyPartFileIsDirectory, .bodyPartFileSizeNotAvailable, .bodyPartFileSizeQueryFailedWithError,
                .bodyPartInputStreamCreationFailed:
                return "multipart: no part"
            case .outputStreamCreationFailed, .outputStreamFileAlreadyExists, .outputStreamURLInvalid, .outputStreamWriteFailed,
                .inputStreamReadFailed:
                return "multipart: no body"
            }
        case let .responseValidationFailed(reason):
            switch reason {
            case .dataFileNil, .dataFileReadFailed: return "validation: file"
            case let .missingContentType(acceptable): return "validation: no type, for \(acceptable)"
            case let .unacceptableContentType(acceptable, actual): return "validation: type \(actual), for \(acceptable)"
            case let .unacceptableStatusCode(code): return "validation: status \(code)"
            }
        case let .responseSerializationFailed(reason):
            switch reason {
            case .inputDataNil, .inputDataNilOrZeroLength: return "serialization: no data"
            case .inputFileNil, .inputFileReadFailed: return "serialization: no file"
            case let .stringSerializationFailed(encoding): return "serialization: string \(encoding)"
            case .jsonSerializationFailed, .propertyListSerializationFailed: return "serialization: \(error.underlyingError != nil)"
            }
        }
    }
    if let error = error as? URLError { return "URL loading: \(error.code.rawValue)" }
    return "own: \(error)"
}
